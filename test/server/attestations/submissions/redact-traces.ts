/** What is left of metadata once it is redacted: nothing, wherever one looks. */
import { randomBytes } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import { connect } from 'nats';
import type { Test } from 'tap';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { connectPool } from '../../../../src/server/database/connect.js';
import type { App } from '../../../support/app.js';
import type { TestKey } from '../../../support/calling/test-keys.js';
import { dumpTables, findTraces } from '../../../support/judging/traces.js';
import { testDatabase } from '../../../support/servers/shared-servers.js';
import { invalidCreation } from '../../rpc/samples.js';

/** A submission, and the salt of its metadata. */
export type Made = { id: string; salt: string };

/** A service of two APIs, a key of it, and what submits with the key. */
type Traced = { app: App; owner: TestKey; make: (metadata: JsonObject) => Promise<Made> };

const ARTIFACT = 'ab'.repeat(32);
const { createAttestation, getAttestation, listAttestations, updateAttestation, deleteAttestation } =
  AttestationService.method;

/** Tests that no copy of redacted metadata is left. */
export function testTraces(t: Test, { app, owner, make }: Traced): void {
  const everywhere = [...app.surfaces(), ...app.surfaces(app.baseUrls[1])];
  const rest = everywhere[0]!;

  t.test('NO COPY OF REDACTED METADATA IS LEFT ANYWHERE', async (t) => {
    const marker = `trace${randomBytes(12).toString('hex')}`;
    const sent: string[] = [];
    const { host, username, password } = new URL(app.config.natsUrl ?? '');
    const listener = await connect({ servers: host, user: username, pass: password });
    listener.subscribe('>', {
      callback: (_, { subject, data }) => sent.push(`${subject} ${Buffer.from(data)}`),
    });
    await listener.flush();

    const keyed = (name: string) => ({ 'idempotency-key': `${name}-${id}` });
    const digest = { [marker]: 1 };
    const quoted = {
      schema: 'slsa.provenance.v1',
      buildDefinition: {
        buildType: `https://example.com/${marker}`,
        externalParameters: { marker },
        resolvedDependencies: [{ digest }],
      },
      runDetails: { builder: { id: 'https://example.com/builder' } },
    };
    let id = 'not made yet';
    const create = () =>
      rest.call(createAttestation, invalidCreation(ARTIFACT, quoted), owner.key, {
        'idempotency-key': 'traced',
      });
    const created = await create();
    id = String(created.response.id);
    const salt = Buffer.from(String(created.response.metadataSalt), 'hex');
    const uncorrected = await make({ schema: 'purl', [marker]: marker });
    await rest.call(createAttestation, { artifact: { sha256: ARTIFACT }, metadata: quoted }, owner.key);
    await app.drain();
    const metadata = { schema: 'purl', purl: `pkg:npm/${marker}@1.0.0` };
    await rest.call(updateAttestation, { id, metadata: quoted }, owner.key, keyed('fails'));
    t.match(JSON.stringify(created.response.metadataErrors), marker, 'errors quote it');
    await rest.call(updateAttestation, { id, metadata }, owner.key, keyed('correct'));
    const secrets = [Buffer.from(marker), salt, Buffer.from(uncorrected.salt, 'hex')];
    await app.pool`ANALYZE`;
    t.ok(findTraces(await dumpTables(app.pool), secrets).length > 1, 'it is found where it is');
    for (const { call } of everywhere) {
      t.match(JSON.stringify((await call(getAttestation, { id }, owner.key)).response), marker);
      await call(listAttestations, { limit: 200 }, owner.key);
    }

    for (const redacted of [id, uncorrected.id]) {
      await rest.call(deleteAttestation, { id: redacted }, owner.key, keyed(`redact-${redacted}`));
    }
    t.same(
      findTraces(await dumpTables(app.pool), secrets),
      [],
      'in no table, nor in what is known of its columns',
    );
    for (const { name, call } of everywhere) {
      const answers = [
        await call(getAttestation, { id }, owner.key),
        await call(listAttestations, { limit: 200 }, owner.key),
        await call(deleteAttestation, { id }, owner.key),
        await call(updateAttestation, { id, metadata }, owner.key, keyed('correct')),
        await call(createAttestation, invalidCreation(ARTIFACT, quoted), owner.key, {
          'idempotency-key': 'traced',
        }),
      ];
      t.equal(answers.at(-1)?.response.id, id);
      t.same(
        answers.map(({ code }) => code),
        Array(5).fill('ok'),
        name,
      );
      t.same(
        findTraces(
          answers.map((answer) => JSON.stringify(answer)),
          secrets,
        ),
        [],
        `in no answer by ${name}`,
      );
    }
    await app.drain();
    await listener.close();
    t.ok(sent.length > 0, 'jobs were sent');
    t.same(findTraces(sent, secrets), [], 'in no message');
    t.same(findTraces(app.recorder.lines, secrets), [], 'in no log line');
    t.same(findTraces(await dumpTables(app.pool), secrets), [], 'and none comes back');
  });

  t.test('no error of the database quotes its parameters, under any configuration', async (t) => {
    const databaseUrl = await testDatabase(t);
    const open = () => connectPool({ url: databaseUrl, name: 'test', max: 1, statementTimeoutMs: 10_000 });
    const setting = open();
    const [database] = await setting<{ name: string }[]>`SELECT quote_ident(current_database()) AS name`;
    await setting.unsafe(`ALTER DATABASE ${database?.name} SET log_parameter_max_length_on_error = -1`);
    await setting.end();
    const pool = open();
    t.teardown(() => pool.end({ timeout: 1 }));
    const error = await pool`SELECT ${'leakcanary'}::text::int`.catch((thrown: unknown) => thrown as object);
    const { where, detail } = error as { where?: string; detail?: string };
    t.notMatch(`${where} ${detail}`, /leakcanary/);
  });
}
