import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AuditAction, AuditActorKind } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { verifyBundle } from '../../../../src/proof/verify/verify.js';
import { freezeLog, listLogs } from '../../../../src/server/log/store/logs.js';
import { startApp } from '../../../support/app.js';
import { newKey, type TestKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { findTraces } from '../../../support/judging/traces.js';
import { until } from '../../../support/until.js';
import { auditOf } from '../../rpc/auditing.js';
import { INVALID, invalidCreation, METADATA, NOTHING } from '../../rpc/samples.js';
import { type Made, testTraces } from './redact-traces.js';

const app = await startApp(t, { apis: 2 });
const surfaces = app.surfaces();
const elsewhere = app.surfaces(app.baseUrls[1]);
const everywhere = [...surfaces, ...elsewhere];
const owner = await newKey(app);
const { createAttestation, getAttestation, updateAttestation, deleteAttestation } = AttestationService.method;
const [rest] = surfaces;
if (rest === undefined) throw new Error('there is no REST surface');
const ARTIFACT = 'ab'.repeat(32);
const PATH = '/v1/attestations';

async function make(metadata: JsonObject = METADATA, { key }: Pick<TestKey, 'key'> = owner): Promise<Made> {
  const { code, response } = await rest!.call(createAttestation, invalidCreation(ARTIFACT, metadata), key);
  if (code !== 'ok') throw new Error(`not created: ${code}`);
  return { id: String(response.id), salt: String(response.metadataSalt) };
}

async function get(id: string): Promise<JsonObject> {
  return (await app.rest(`${PATH}/${id}`, { apiKey: owner.key })).json;
}

async function redact(id: string, key = owner.key): Promise<void> {
  const { code } = await rest!.call(deleteAttestation, { id }, key);
  if (code !== 'ok') throw new Error(`not redacted: ${code}`);
}

t.test('a redaction erases metadata and salt, and nothing else', async (t) => {
  const unseal = await app.holdSealing();
  for (const { name, call } of surfaces) {
    const { id } = await make();
    const { metadata_salt, ...before } = await get(id);
    t.match(metadata_salt, /^[0-9a-f]{64}$/);
    const outcome = await call(deleteAttestation, { id }, owner.key);
    t.equal(outcome.code, 'ok', name);
    if (name === 'REST') t.equal(outcome.status, 200);
    for (const reader of everywhere) {
      const { response } = await reader.call(getAttestation, { id }, owner.key);
      t.same(response, outcome.response, `redacted by ${name}, shown at once by ${reader.name}`);
    }
    const { redacted_at, ...after } = await get(id);
    t.same(after, { ...before, metadata: { schema: 'purl' }, metadata_state: 'redacted' }, name);
    t.ok(String(redacted_at) > String(before.submitted_at));
    t.match(await auditOf(app, id), [
      {
        action: AuditAction.ATTESTATION_REDACTED,
        actorKind: AuditActorKind.API_KEY,
        actorId: owner.id,
        projectId: owner.projectId,
        requestId: outcome.requestId,
        detail: { schema: 'purl' },
      },
    ]);
  }
  await unseal();
});

t.test('the bundle stays the same and verifies, whenever the metadata was redacted', async (t) => {
  const [self] = app.witnesses;
  const unseal = await app.holdSealing();
  const unsealed = await make();
  await redact(unsealed.id);
  self?.hold();
  await unseal();
  const unsettled = await make();
  await until('it is sealed', async () => (await get(unsettled.id)).batch_id);
  await redact(unsettled.id);
  t.match(await get(unsettled.id), { status: 'queued', metadata_state: 'redacted' });
  self?.release();
  const corrected = await make(INVALID);
  await rest.call(updateAttestation, { id: corrected.id, metadata: METADATA }, owner.key);
  await app.drain();
  const trustRoots = (await app.rest('/verify/trust_roots.json')).json;
  for (const { id } of [unsealed, unsettled, corrected]) {
    const bundle = async () =>
      (await app.rest(`${PATH}/${id}/bundle`, { apiKey: owner.key })).body.toString();
    const before = await bundle();
    await redact(id);
    t.equal(await bundle(), before);
    const options = { trustRoots, artifactSha256: ARTIFACT, now: new Date() };
    const verification = await verifyBundle(before, options);
    t.equal(verification.verdict, 'verified', verification.summary);
    t.match(await get(id), { status: 'witnessed', metadata_state: 'redacted', metadata: { schema: 'purl' } });
  }
});

t.test('doing it again is the same answer and no second entry', async (t) => {
  const { id } = await make();
  const first = await rest.call(deleteAttestation, { id }, owner.key);
  await app.drain();
  const shown = await rest.call(getAttestation, { id }, owner.key);
  for (const { name, call } of everywhere) {
    const { code, response } = await call(deleteAttestation, { id }, owner.key);
    t.equal(code, 'ok', name);
    t.equal(response.redactedAt, first.response.redactedAt, name);
    t.same({ ...response, bundle: shown.response.bundle }, shown.response, name);
  }
  t.equal((await auditOf(app, id)).length, 1);
});

t.test(
  'submissions of another project or environment and unknown ones return the same not found',
  async (t) => {
    const { id } = await make();
    const stranger = await newKey(app);
    const test = await newKey(app, { projectId: owner.projectId, environment: Environment.TEST });
    for (const { key } of [stranger, test]) {
      for (const other of [id, NOTHING.submissionId]) {
        for (const { name, call } of everywhere) {
          const { code, status, grpcCode } = await call(deleteAttestation, { id: other }, key);
          t.equal(code, 'submission.not_found', name);
          t.equal(name === 'REST' ? status : grpcCode, name === 'REST' ? 404 : 5);
        }
      }
    }
    t.match(await get(id), { metadata: METADATA, metadata_state: 'valid' });
  },
);

t.test('a redaction needs a key, and the scope for writing', async (t) => {
  const { id } = await make();
  const reader = await newKey(app, { projectId: owner.projectId, scopes: ['attestations:read'] });
  for (const [key, code, http, grpc] of [
    [undefined, 'auth.missing_credentials', 401, 16],
    ['svc_live_x', 'auth.invalid_key', 401, 16],
    [reader.key, 'auth.insufficient_scope', 403, 7],
  ] as const) {
    for (const { name, call } of surfaces) {
      const outcome = await call(deleteAttestation, { id }, key);
      t.equal(outcome.code, code, name);
      t.equal(name === 'REST' ? outcome.status : outcome.grpcCode, name === 'REST' ? http : grpc);
    }
  }
  t.match(await get(id), { metadata_state: 'valid' });
});

t.test('a redaction over REST accepts an id, and no body', async (t) => {
  const { id } = await make();
  const send = (path: string, body?: string) =>
    app.rest(path, { method: 'DELETE', apiKey: owner.key, ...(body === undefined ? {} : { body }) });
  for (const [path, body] of [
    [`${PATH}/${id}`, '{"metadata":{}}'],
    [`${PATH}/${id}?id=sub_other`, undefined],
    [`${PATH}/${id}?force=true`, undefined],
    [`${PATH}/${'x'.repeat(65)}`, undefined],
  ] as const) {
    const { status, json } = await send(path, body);
    t.equal(status, 400, `${path} ${body}`);
    t.match(json, { error: { code: 'request.invalid' } });
  }
  t.equal((await send(PATH)).status, 405);
  t.match(await get(id), { metadata_state: 'valid' });
});

t.test('a retried redaction is a replay, and its key is rejected for any other request', async (t) => {
  const { id } = await make();
  const other = await make();
  const headers = { 'idempotency-key': `redact-${id}` };
  const first = await rest.call(deleteAttestation, { id }, owner.key, headers);
  for (const { name, call } of everywhere) {
    const again = await call(deleteAttestation, { id }, owner.key, headers);
    t.equal(again.headers['idempotent-replayed'], 'true', name);
    t.equal(again.response.redactedAt, first.response.redactedAt);
    const reused = await call(deleteAttestation, { id: other.id }, owner.key, headers);
    t.equal(reused.code, 'idempotency.key_reused', name);
  }
  t.match(await get(other.id), { metadata_state: 'valid' });
});

testTraces(t, { app, owner, make });

t.test('corrections and redactions at once never bring metadata back', async (t) => {
  const made = await Promise.all(Array.from({ length: 12 }, () => make(INVALID)));
  const outcomes = await Promise.all(
    made.flatMap(({ id }, n) =>
      Array.from({ length: 12 }, async (_, i) => {
        const { call } = everywhere[(n + i) % everywhere.length]!;
        const headers: Record<string, string> = i < 6 ? { 'idempotency-key': `race-${id}-${i % 2}` } : {};
        const isCorrection = i % 2 === 0;
        const { code } = isCorrection
          ? await call(updateAttestation, { id, metadata: METADATA }, owner.key, headers)
          : await call(deleteAttestation, { id }, owner.key, headers);
        return { id, isCorrection, code };
      }),
    ),
  );
  const refused = ['submission.redacted', 'submission.not_correctable'];
  for (const { id, salt } of made) {
    t.match(await get(id), { metadata: { schema: 'purl' }, metadata_state: 'redacted' });
    const [row] = await app.pool<{ row: string }[]>`SELECT s::text AS row FROM submission s WHERE id = ${id}`;
    t.same(findTraces([row?.row ?? ''], [Buffer.from('leakcanary'), Buffer.from(salt, 'hex')]), []);
    const mine = outcomes.filter((outcome) => outcome.id === id);
    t.same([...new Set(mine.filter((o) => !o.isCorrection).map(({ code }) => code))], ['ok']);
    t.ok(mine.filter((o) => o.isCorrection).every(({ code }) => code === 'ok' || refused.includes(code)));
    const done = (await auditOf(app, id)).map(({ action }) => action);
    const wasCorrected = mine.some((o) => o.isCorrection && o.code === 'ok');
    t.same(
      done,
      wasCorrected
        ? [AuditAction.ATTESTATION_REDACTED, AuditAction.ATTESTATION_CORRECTED]
        : [AuditAction.ATTESTATION_REDACTED],
      'an entry for each effect',
    );
  }
});

t.test('of concurrent corrections one is made, and the others get an error', async (t) => {
  const { id } = await make(INVALID);
  const wanted = Array.from({ length: 24 }, (_, i) => ({ schema: 'purl', purl: `pkg:npm/one@${i}` }));
  const outcomes = await Promise.all(
    wanted.map((metadata, i) =>
      everywhere[i % everywhere.length]!.call(updateAttestation, { id, metadata }, owner.key),
    ),
  );
  const codes = outcomes.map(({ code }) => code);
  t.same([...codes].sort(), ['ok', ...Array(23).fill('submission.not_correctable')].sort());
  t.match(await get(id), { metadata: wanted[codes.indexOf('ok')], attested_metadata: INVALID });
  t.equal((await auditOf(app, id)).length, 1);
});

t.test('a frozen log still honours corrections and redactions', async (t) => {
  const [valid, invalid] = [await make(), await make(INVALID)];
  await app.drain();
  for (const log of await listLogs(app.pool)) await freezeLog(app.pool, log.id, 'a test');
  const refused = await rest.call(createAttestation, invalidCreation(ARTIFACT), owner.key);
  t.equal(refused.code, 'service.unavailable', 'it takes nothing new');
  for (const { id } of [invalid]) {
    t.equal((await rest.call(updateAttestation, { id, metadata: METADATA }, owner.key)).code, 'ok');
  }
  for (const { id } of [valid, invalid]) {
    await redact(id);
    t.match(await get(id), { status: 'witnessed', metadata_state: 'redacted', metadata: { schema: 'purl' } });
  }
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
