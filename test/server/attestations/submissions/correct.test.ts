import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AuditAction, AuditActorKind } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { utf8 } from '../../../../src/proof/bytes/encoding.js';
import { jcs } from '../../../../src/proof/bytes/jcs.js';
import {
  metadataCommitment,
  parseStatement,
  type StatementFields,
} from '../../../../src/proof/statement/statement.js';
import { verifyBundle } from '../../../../src/proof/verify/verify.js';
import { startApp } from '../../../support/app.js';
import type { Surface } from '../../../support/calling/rpc-clients.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { auditOf } from '../../rpc/auditing.js';
import { INVALID, invalidCreation, METADATA, SLSA } from '../../rpc/samples.js';
import { submitInvalid } from '../../rpc/submitting.js';

const app = await startApp(t, { apis: 2 });
const surfaces = app.surfaces();
const elsewhere = app.surfaces(app.baseUrls[1]);
const owner = await newKey(app);
const { createAttestation, getAttestation, updateAttestation, listAttestations } = AttestationService.method;

const PATH = '/v1/attestations';

async function get(id: string, key = owner.key): Promise<JsonObject> {
  return (await app.rest(`${PATH}/${id}`, { apiKey: key })).json;
}

t.test('a correction replaces the indexed metadata, and nothing of the leaf', async (t) => {
  const unseal = await app.holdSealing();
  for (const { name, call } of surfaces) {
    const created = await submitInvalid(app, owner);
    t.match(created, { warnings: [{}], metadata_errors: [{}], metadata_state: 'invalid' });
    const id = String(created.id);
    const outcome = await call(updateAttestation, { id, metadata: SLSA }, owner.key);
    t.equal(outcome.code, 'ok', name);
    if (name === 'REST') t.equal(outcome.status, 200);
    const { response } = await elsewhere[0]!.call(getAttestation, { id }, owner.key);
    t.same(response, outcome.response, `${name}: it is shown at once, by any process`);
    t.same(
      await get(id),
      {
        ...created,
        metadata: SLSA,
        metadata_state: 'valid',
        metadata_errors: [],
        warnings: [],
        attested_metadata: INVALID,
      },
      `${name}: all else is as it was`,
    );
    t.match(await auditOf(app, id), [
      {
        action: AuditAction.ATTESTATION_CORRECTED,
        actorKind: AuditActorKind.API_KEY,
        actorId: owner.id,
        projectId: owner.projectId,
        requestId: outcome.requestId,
        detail: { schema: 'slsa.provenance.v1', attested_schema: 'purl' },
      },
    ]);
  }
  await unseal();
});

t.test(
  'a bundle of corrected metadata verifies, and the attested metadata opens its commitment',
  async (t) => {
    const created = await submitInvalid(app, owner);
    const id = String(created.id);
    await app.drain();
    const bundleOf = async () =>
      (await app.rest(`${PATH}/${id}/bundle`, { apiKey: owner.key })).body.toString();
    const before = await bundleOf();
    await app.rest(`${PATH}/${id}`, { method: 'PATCH', apiKey: owner.key, body: { metadata: METADATA } });
    t.equal(await bundleOf(), before, 'it is the same one');
    const trustRoots = (await app.rest('/verify/trust_roots.json')).json;
    const verification = await verifyBundle(before, {
      trustRoots,
      artifactSha256: 'ab'.repeat(32),
      now: new Date(),
    });
    t.equal(verification.verdict, 'verified', verification.summary);
    const { attested_metadata, metadata_salt, metadata } = await get(id);
    const { payload } = JSON.parse(before).sigstore_bundle.dsseEnvelope;
    const statement = parseStatement(Buffer.from(payload, 'base64')) as StatementFields;
    const salt = Buffer.from(String(metadata_salt), 'hex');
    t.equal(statement.commitment, metadataCommitment(salt, utf8(jcs(attested_metadata))));
    t.not(statement.commitment, metadataCommitment(salt, utf8(jcs(metadata))));
  },
);

t.test(
  'a retried correction is answered with the submission, on every surface and by any process',
  async (t) => {
    for (const first of surfaces) {
      const id = String((await submitInvalid(app, owner)).id);
      const headers = { 'idempotency-key': `correct-${id}` };
      const message = { id, metadata: METADATA };
      const corrected = await first.call(updateAttestation, message, owner.key, headers);
      t.equal(corrected.headers['idempotent-replayed'], undefined);
      for (const again of [...surfaces, ...elsewhere]) {
        const replayed = await again.call(updateAttestation, message, owner.key, headers);
        const what = `${first.name}, again by ${again.name}`;
        t.equal(replayed.headers['idempotent-replayed'], 'true', what);
        t.match(replayed.response, { id, metadata: METADATA, metadataState: 'METADATA_STATE_VALID' }, what);
        const other = await again.call(updateAttestation, { id, metadata: SLSA }, owner.key, headers);
        t.equal(other.code, 'idempotency.key_reused', what);
      }
      t.equal((await auditOf(app, id)).length, 1);
    }
  },
);

t.test('a retried creation of a submission corrected since returns no warning', async (t) => {
  const headers = { 'idempotency-key': 'create-then-correct' };
  const [rest] = surfaces as [Surface];
  const create = () => rest.call(createAttestation, invalidCreation('ef'.repeat(32)), owner.key, headers);
  const id = String((await create()).response.id);
  await rest.call(updateAttestation, { id, metadata: METADATA }, owner.key);
  const replayed = await create();
  t.equal(replayed.headers['idempotent-replayed'], 'true');
  t.match(replayed.response, { id, metadata: METADATA, metadataState: 'METADATA_STATE_VALID' });
  t.equal(replayed.response.warnings, undefined);
});

t.test('lists by schema use the current metadata, before and after sealing', async (t) => {
  const lister = await newKey(app);
  const ids = (json: JsonObject) => (json.data as { id: string }[]).map(({ id }) => id);
  const listed = async (schema: string) => {
    const found: string[] = [];
    let cursor = '';
    do {
      const { json } = await app.rest(`${PATH}?schema=${schema}&limit=2&cursor=${cursor}`, {
        apiKey: lister.key,
      });
      found.push(...ids(json));
      cursor = String(json.next_cursor);
    } while (cursor !== '');
    return found;
  };
  const make = async () => String((await submitInvalid(app, lister)).id);
  const correct = (id: string, metadata: JsonObject) =>
    surfaces[0]!.call(updateAttestation, { id, metadata }, lister.key);
  const seal = await app.holdSealing();
  const early = [await make(), await make(), await make()];
  await correct(early[0]!, SLSA);
  t.same(await listed('slsa.provenance.v1'), [early[0]], 'while nothing is sealed');
  await seal();
  await app.drain();
  const late = [await make(), await make(), await make()];
  await app.drain();
  await correct(early[1]!, SLSA);
  await correct(late[2]!, SLSA);
  await correct(late[1]!, METADATA);
  t.same(await listed('slsa.provenance.v1'), [late[2], early[1], early[0]]);
  t.same(await listed('purl'), [late[1], late[0], early[2]]);
  for (const { name, call } of surfaces) {
    const { response } = await call(listAttestations, { schema: 'purl' }, lister.key);
    const data = response.data as JsonObject[];
    t.same(
      data.map(({ id }) => id),
      [late[1], late[0], early[2]],
      name,
    );
    t.match(
      data,
      [
        { metadata: METADATA, attestedMetadata: INVALID, metadataState: 'METADATA_STATE_VALID' },
        { metadata: INVALID, metadataState: 'METADATA_STATE_INVALID', metadataErrors: [{ path: String }] },
        { metadata: INVALID, attestedMetadata: undefined },
      ],
      name,
    );
  }
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
