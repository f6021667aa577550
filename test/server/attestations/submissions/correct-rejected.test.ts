/** Corrections that are rejected, and change nothing. */
import type { JsonObject } from '@bufbuild/protobuf';
import t, { type Test } from 'tap';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { startApp } from '../../../support/app.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { auditOf } from '../../rpc/auditing.js';
import { INVALID, METADATA, NOTHING, SLSA } from '../../rpc/samples.js';
import { submit, submitInvalid } from '../../rpc/submitting.js';

const app = await startApp(t, { apis: 2 });
const surfaces = app.surfaces();
const elsewhere = app.surfaces(app.baseUrls[1]);
const owner = await newKey(app);
const { updateAttestation, deleteAttestation } = AttestationService.method;
const PATH = '/v1/attestations';

async function get(id: string): Promise<JsonObject> {
  return (await app.rest(`${PATH}/${id}`, { apiKey: owner.key })).json;
}

/** Asserts that a correction is refused on every surface, and changes nothing. */
async function assertRefused(
  t: Test,
  id: string,
  metadata: JsonObject,
  expected: { code: string; status: number; grpcCode: number; details?: object },
  key = owner.key,
): Promise<void> {
  const [before] = await app.pool`SELECT s::text AS row FROM submission s WHERE id = ${id}`;
  for (const surface of [...surfaces, ...elsewhere]) {
    const { name } = surface;
    const outcome = await surface.call(updateAttestation, { id, metadata }, key);
    const { code, details = {} } = expected;
    t.match(outcome, { code, details }, name);
    const isRest = name === 'REST';
    t.equal(isRest ? outcome.status : outcome.grpcCode, isRest ? expected.status : expected.grpcCode, name);
  }
  const [after] = await app.pool`SELECT s::text AS row FROM submission s WHERE id = ${id}`;
  t.same(after, before, 'nothing was changed');
}

t.test('metadata that still fails is rejected with every failing place, and changes nothing', async (t) => {
  const id = String((await submitInvalid(app, owner)).id);
  await assertRefused(
    t,
    id,
    { schema: 'purl', purl: 1 },
    {
      code: 'submission.invalid_metadata',
      status: 422,
      grpcCode: 3,
      details: { schema: 'purl', errors: [{ path: '/purl', message: String }] },
    },
  );
  await assertRefused(
    t,
    id,
    { ...SLSA, runDetails: {} },
    {
      code: 'submission.invalid_metadata',
      status: 422,
      grpcCode: 3,
      details: { schema: 'slsa.provenance.v1', errors: [{ path: '/runDetails/builder' }] },
    },
  );
  t.match(await get(id), { metadata: INVALID, metadata_state: 'invalid' });
  t.same(await auditOf(app, id), []);
});

t.test('an unknown schema is rejected with the names of the known ones', async (t) => {
  const id = String((await submitInvalid(app, owner)).id);
  await assertRefused(
    t,
    id,
    { schema: 'no.such', purl: 'x' },
    {
      code: 'submission.unknown_schema',
      status: 422,
      grpcCode: 3,
      details: {
        known: [
          'evaluation.v1',
          'intoto.test_result.v0.1',
          'purl',
          'scitt.statement.v1',
          'slsa.provenance.v1',
          'ui_snapshot.v1',
        ],
      },
    },
  );
});

t.test(
  'metadata that is valid cannot be corrected, whether from the start or since a correction',
  async (t) => {
    const conflict = { code: 'submission.not_correctable', status: 409, grpcCode: 9 };
    const { id } = await submit(app, owner);
    await assertRefused(t, id, SLSA, conflict);
    await assertRefused(t, id, INVALID, conflict);
    const corrected = String((await submitInvalid(app, owner)).id);
    const { json } = await app.rest(`${PATH}/${corrected}`, {
      method: 'PATCH',
      apiKey: owner.key,
      body: { metadata: METADATA },
    });
    t.equal(json.metadata_state, 'valid');
    await assertRefused(t, corrected, SLSA, conflict);
    t.equal((await auditOf(app, corrected)).length, 1);
  },
);

t.test('redacted metadata cannot be corrected', async (t) => {
  const id = String((await submitInvalid(app, owner)).id);
  await surfaces[0]!.call(deleteAttestation, { id }, owner.key);
  await assertRefused(t, id, METADATA, { code: 'submission.redacted', status: 409, grpcCode: 9 });
});

t.test(
  'submissions of another project or environment and unknown ones return the same not found',
  async (t) => {
    const id = String((await submitInvalid(app, owner)).id);
    const stranger = await newKey(app);
    const test = await newKey(app, { projectId: owner.projectId, environment: Environment.TEST });
    const absent = { code: 'submission.not_found', status: 404, grpcCode: 5 };
    for (const { key } of [stranger, test]) {
      for (const metadata of [METADATA, INVALID, { schema: 'no.such' }]) {
        await assertRefused(t, id, metadata, absent, key);
        await assertRefused(t, NOTHING.submissionId, metadata, absent, key);
      }
    }
  },
);

t.test('a correction needs a key with the scope for writing', async (t) => {
  const id = String((await submitInvalid(app, owner)).id);
  const reader = await newKey(app, { projectId: owner.projectId, scopes: ['attestations:read'] });
  await assertRefused(
    t,
    id,
    METADATA,
    { code: 'auth.insufficient_scope', status: 403, grpcCode: 7 },
    reader.key,
  );
  await assertRefused(t, id, METADATA, { code: 'auth.invalid_key', status: 401, grpcCode: 16 }, 'svc_live_x');
  for (const { name, call } of surfaces) {
    const outcome = await call(updateAttestation, { id, metadata: METADATA }, undefined);
    t.equal(outcome.code, 'auth.missing_credentials', name);
  }
});

t.test('metadata out of its bounds, without a schema or without JSON is rejected', async (t) => {
  const id = String((await submitInvalid(app, owner)).id);
  let deep: JsonObject = {};
  for (let i = 0; i < 33; i++) deep = { deep };
  for (const [metadata, path] of [
    [{}, '/metadata/schema'],
    [{ schema: 7 }, '/metadata/schema'],
    [{ schema: '' }, '/metadata/schema'],
    [{ schema: 'purl', more: 'x'.repeat(65_536) }, '/metadata'],
    [{ schema: 'purl', deep }, '/metadata'],
  ] as [JsonObject, string][]) {
    await assertRefused(t, id, metadata, {
      code: 'request.invalid',
      status: 400,
      grpcCode: 3,
      details: { errors: [{ path }] },
    });
  }
  const patch = (body: string | JsonObject) =>
    app.rest(`${PATH}/${id}`, { method: 'PATCH', apiKey: owner.key, body });
  for (const [body, code] of [
    ['{', 'request.malformed_json'],
    [{}, 'request.invalid'],
    [{ metadata: METADATA, validation: 'lenient' }, 'request.invalid'],
    [{ metadata: METADATA, id }, 'request.invalid'],
    [{ metadata: [] }, 'request.invalid'],
    ['{"metadata": {"schema": "purl", "purl": "\\u0000"}}', 'request.invalid'],
  ] as [string | JsonObject, string][]) {
    const { status, json } = await patch(body);
    t.equal(status, 400, JSON.stringify(body));
    t.equal((json.error as JsonObject).code, code);
  }
  t.same(await auditOf(app, id), []);
});

t.test('a rejected correction leaves its idempotency key free', async (t) => {
  const id = String((await submitInvalid(app, owner)).id);
  const headers = { 'idempotency-key': `refused-${id}` };
  const send = (metadata: JsonObject) =>
    surfaces[0]!.call(updateAttestation, { id, metadata }, owner.key, headers);
  t.equal((await send(INVALID)).code, 'submission.invalid_metadata');
  const fixed = await send(METADATA);
  t.equal(fixed.code, 'ok');
  t.equal(fixed.headers['idempotent-replayed'], undefined);
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
