import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AuditAction, AuditActorKind } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { AttestationService } from '../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { jcs } from '../../../src/proof/bytes/jcs.js';
import { metadataCommitment, parseStatement } from '../../../src/proof/statement/statement.js';
import { verifyBundle } from '../../../src/proof/verify/verify.js';
import { startApp } from '../../support/app.js';
import type { Surface } from '../../support/calling/rpc-clients.js';
import { newKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks, CANARY } from '../../support/judging/recorder.js';
import { auditOf } from './auditing.js';
import { INVALID, invalidCreation, METADATA, NOTHING } from './samples.js';
import { submit } from './submitting.js';

const app = await startApp(t, { apis: 2 });
const surfaces = app.surfaces();
const elsewhere = app.surfaces(app.baseUrls[1]);
const owner = await newKey(app);
const { createAttestation, getAttestation, updateAttestation, listAttestations, deleteAttestation } =
  AttestationService.method;

const SLSA = {
  schema: 'slsa.provenance.v1',
  buildDefinition: { buildType: `https://example.com/${CANARY}`, externalParameters: {} },
  runDetails: { builder: { id: 'https://example.com/builder' } },
};
const PATH = '/v1/attestations';

/** A submission whose metadata is invalid. @returns the answer to its creation */
async function submitInvalid(metadata: JsonObject = INVALID, key = owner.key): Promise<JsonObject> {
  const body = { ...invalidCreation('ab'.repeat(32), metadata), validation: 'lenient' };
  const { status, json } = await app.rest(PATH, { apiKey: key, body });
  if (status !== 201) throw new Error(`not created: ${JSON.stringify(json)}`);
  return json;
}

async function get(id: string, key = owner.key): Promise<JsonObject> {
  return (await app.rest(`${PATH}/${id}`, { apiKey: key })).json;
}

/** Asserts that a correction is refused on every surface, and changes nothing. */
async function assertRefused(
  t: Tap,
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
type Tap = Pick<typeof t, 'match' | 'equal' | 'same'>;

t.test('a correction replaces the indexed metadata, and nothing of the leaf', async (t) => {
  const unseal = await app.holdSealing();
  for (const { name, call } of surfaces) {
    const created = await submitInvalid();
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
    const created = await submitInvalid();
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
    const statement = parseStatement(Buffer.from(payload, 'base64'));
    const salt = Buffer.from(String(metadata_salt), 'hex');
    t.equal(statement.commitment, metadataCommitment(salt, utf8(jcs(attested_metadata))));
    t.not(statement.commitment, metadataCommitment(salt, utf8(jcs(metadata))));
  },
);

t.test('metadata that still fails is rejected with every failing place, and changes nothing', async (t) => {
  const id = String((await submitInvalid()).id);
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

t.test('an unknown schema is rejected with the names of those there are', async (t) => {
  const id = String((await submitInvalid()).id);
  await assertRefused(
    t,
    id,
    { schema: 'no.such', purl: 'x' },
    {
      code: 'submission.unknown_schema',
      status: 422,
      grpcCode: 3,
      details: { known: ['intoto.test_result.v0.1', 'purl', 'slsa.provenance.v1'] },
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
    const corrected = String((await submitInvalid()).id);
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
  const id = String((await submitInvalid()).id);
  await surfaces[0]!.call(deleteAttestation, { id }, owner.key);
  await assertRefused(t, id, METADATA, { code: 'submission.redacted', status: 409, grpcCode: 9 });
});

t.test(
  'submissions of another project or environment and unknown ones return the same not found',
  async (t) => {
    const id = String((await submitInvalid()).id);
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
  const id = String((await submitInvalid()).id);
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
  const id = String((await submitInvalid()).id);
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

t.test(
  'a retried correction is answered with the submission, on every surface and by any process',
  async (t) => {
    for (const first of surfaces) {
      const id = String((await submitInvalid()).id);
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

t.test('a rejected correction leaves its idempotency key free', async (t) => {
  const id = String((await submitInvalid()).id);
  const headers = { 'idempotency-key': `refused-${id}` };
  const send = (metadata: JsonObject) =>
    surfaces[0]!.call(updateAttestation, { id, metadata }, owner.key, headers);
  t.equal((await send(INVALID)).code, 'submission.invalid_metadata');
  const fixed = await send(METADATA);
  t.equal(fixed.code, 'ok');
  t.equal(fixed.headers['idempotent-replayed'], undefined);
});

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

t.test('lists by schema go by the metadata as it is now, before and after sealing', async (t) => {
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
  const make = async () => String((await submitInvalid(INVALID, lister.key)).id);
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
