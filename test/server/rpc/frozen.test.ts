import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AuditAction, AuditActorKind } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { AttestationService } from '../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { InfoService } from '../../../gen/attestation/v1/service_pb.js';
import { verifyBundle } from '../../../src/proof/verify/verify.js';
import { logManager } from '../../../src/server/process/log-manager.js';
import { openRegister } from '../../../src/server/witnessing/register/open-register.js';
import { startApp } from '../../support/app.js';
import { newKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { until } from '../../support/until.js';
import { creation } from './samples.js';
import { type Made, submit } from './submitting.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const live = await newKey(app);
const test = await newKey(app, { environment: Environment.TEST });
const { createAttestation } = AttestationService.method;
const { getHealth } = InfoService.method;
const before: Made[] = [];
const strandedIds: string[] = [];

/** A request under a key, of which the old log took one and never published it. */
const resubmit = () =>
  app.rest('/v1/attestations', {
    method: 'POST',
    apiKey: live.key,
    headers: { 'idempotency-key': 'stranded' },
    body: { artifact: { sha256: 'cd'.repeat(32) }, metadata: { schema: 'purl', purl: 'pkg:npm/a@1.0.0' } },
  });

t.test(
  'a log whose database contradicts the register rejects submissions, and other calls continue',
  async (t) => {
    for (let i = 0; i < 3; i++) before.push(await submit(app, live));
    await app.drain();
    const unseal = await app.holdSealing();
    const lost = await resubmit();
    t.equal(lost.status, 201);
    strandedIds.push(String(lost.json.id));
    await writeFile(join(app.register, 'live.log.example.com'), `1000 ${'0'.repeat(64)}\n`);
    const health = await app.rest('/v1/service/health', { apiKey: live.key });
    t.equal(health.status, 503);
    t.equal(
      (await app.rest('/v1/service/health', { apiKey: test.key })).status,
      200,
      'of its own environment',
    );
    for (const { name, call } of surfaces) {
      for (const outcome of [
        await call(getHealth, {}, live.key),
        await call(createAttestation, creation('ab'.repeat(32)), live.key),
      ]) {
        t.match(
          outcome,
          { code: 'service.unavailable', message: /frozen/, status: name === 'REST' ? 503 : 0 },
          name,
        );
        t.equal(outcome.grpcCode, name === 'REST' ? 0 : 14);
        t.match(outcome.headers['retry-after'], /^[1-9]\d?$/);
      }
      t.equal(
        (await call(createAttestation, creation('ab'.repeat(32)), test.key)).code,
        'ok',
        'the test log goes on',
      );
    }
    const { status, json } = await app.rest(`/v1/attestations/${before[0]!.id}`, { apiKey: live.key });
    t.equal(status, 200);
    t.match(json, { status: 'witnessed', bundle: { submission: { id: before[0]!.id } } });
    t.equal((await app.rest('/verify/log/live/checkpoint')).status, 200);
    t.match(app.recorder.lines.join('\n'), /"level":"fatal".*the log is frozen/);
    await unseal();
  },
);

t.test('a new epoch of the log continues under a new origin, and the old one stays readable', async (t) => {
  const logs = logManager(app.pool, await openRegister(app.register));
  t.match(await logs.newEpoch('live'), {
    origin: 'live-2.log.example.com',
    epoch: 2,
    leaves: 0,
    state: 'ok',
  });
  const entries =
    await app.pool`SELECT actor_kind, actor_id, action, resource_id FROM audit_entry ORDER BY at`;
  t.match(entries, [
    {
      actor_kind: AuditActorKind.SYSTEM,
      actor_id: 'register',
      action: AuditAction.LOG_FROZEN,
      resource_id: 'live.log.example.com',
    },
    {
      actor_kind: AuditActorKind.ADMIN,
      actor_id: 'cli',
      action: AuditAction.LOG_NEW_EPOCH,
      resource_id: 'live-2.log.example.com',
    },
  ]);
  const after = [await until('the process has heard of it', () => submit(app, live).catch(() => undefined))];
  after.push(await submit(app, live));
  t.equal(after[0]!.logIndex, 0, 'its indexes begin anew');
  const stranded = await resubmit();
  t.match(stranded, { status: 201, json: { log_index: 2 } }, 'what was stranded is taken under its old key');
  t.equal(stranded.headers['idempotent-replayed'], undefined);
  t.equal((await resubmit()).headers['idempotent-replayed'], 'true', 'once');
  await app.drain();
  t.equal((await app.rest('/v1/service/health', { apiKey: live.key })).status, 200);

  const idsOf = (made: readonly Made[]) => made.map(({ id }) => id);
  const wanted = [...idsOf(before), ...strandedIds, ...idsOf(after), stranded.json.id].reverse();
  const listed: string[] = [];
  let cursor = '';
  do {
    const { json } = await app.rest(`/v1/attestations?limit=2&cursor=${cursor}`, { apiKey: live.key });
    listed.push(...(json.data as { id: string }[]).map(({ id }) => id));
    cursor = String(json.next_cursor);
  } while (cursor !== '');
  t.same(listed, wanted, 'both are in one list, newest first');

  const roots = (await app.rest('/verify/trust_roots.json')).json;
  const published = roots.transparency_logs as JsonObject[];
  const ends = published.map(({ valid_to }) => valid_to);
  t.same(
    ends,
    [laterBy(published[2]!.valid_from, 3_600_000), undefined, undefined],
    'the old one has an end',
  );
  const inSigstore = (await app.rest('/verify/trusted_root.json')).json.tlogs as JsonObject[];
  t.match(inSigstore, [
    { publicKey: { validFor: { end: ends[0] } } },
    { publicKey: { validFor: { end: undefined } } },
  ]);
  const origins = published.map(({ origin }) => origin);
  t.same(origins, ['live.log.example.com', 'test.log.example.com', 'live-2.log.example.com']);
  for (const { id, artifactSha256 } of [before[0]!, after[0]!]) {
    const { body } = await app.rest(`/v1/attestations/${id}/bundle`, { apiKey: live.key });
    const options = { trustRoots: roots, artifactSha256, now: new Date() };
    const verification = await verifyBundle(body.toString(), options);
    t.equal(verification.verdict, 'verified', verification.summary);
  }
  const checkpoints = await Promise.all(
    ['live', 'live-2'].map(async (name) =>
      (await app.rest(`/verify/log/${name}/checkpoint`)).body.toString(),
    ),
  );
  t.match(checkpoints[0], /^live\.log\.example\.com\n3\n/);
  t.match(checkpoints[1], /^live-2\.log\.example\.com\n3\n/);
});

t.test('the page of the old epoch explains its end to auditors', async (t) => {
  const page = async (name: string) => (await app.rest(`/verify/log/${name}`)).json;
  const old = await until('the page has been read again', async () => {
    const read = await page('live');
    return read.state === 'closed' && read;
  });
  const roots = (await app.rest('/verify/trust_roots.json')).json;
  const [first, , next] = roots.transparency_logs as JsonObject[];
  t.match(old, {
    origin: 'live.log.example.com',
    environment: 'live',
    epoch: 1,
    verifier_key: first!.verifier_key,
    state: 'closed',
    size: 3,
    root_hash: /^[0-9a-f]{64}$/,
    created_at: first!.valid_from,
    frozen_at: /^20.*Z$/,
    frozen_reason:
      /^the register has a checkpoint of size 1000, the database has leaves up to 4 and batches up to 3/,
    stranded: 1,
    lost_checkpoint: { size: 1000, root_hash: '0'.repeat(64) },
    closed_at: next!.valid_from,
    successor: { origin: 'live-2.log.example.com', url: next!.url },
  });
  const [open, other] = [await page('live-2'), await page('test')];
  t.match(open, { state: 'open', epoch: 2, size: 3, root_hash: /^[0-9a-f]{64}$/ });
  t.match(other, { state: 'open', epoch: 1 });
  for (const each of [open, other]) {
    t.notOk('frozen_at' in each || 'stranded' in each || 'closed_at' in each || 'successor' in each);
  }
  t.equal((await app.rest('/verify/log/live-3')).status, 404);
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});

function laterBy(time: unknown, ms: number): string {
  return new Date(Date.parse(String(time)) + ms).toISOString();
}
