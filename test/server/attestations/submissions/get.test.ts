import { randomBytes } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { utf8 } from '../../../../src/proof/bytes/encoding.js';
import { jcs } from '../../../../src/proof/bytes/jcs.js';
import {
  metadataCommitment,
  parseStatement,
  type StatementFields,
} from '../../../../src/proof/statement/statement.js';
import { startApp } from '../../../support/app.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { until } from '../../../support/until.js';
import { creation, NOTHING } from '../../rpc/samples.js';

const app = await startApp(t, { apis: 2 });
const surfaces = app.surfaces();
const owner = await newKey(app);
const { createAttestation, deleteAttestation, getAttestation } = AttestationService.method;

async function submit(): Promise<JsonObject & { id: string }> {
  const artifact = randomBytes(32).toString('hex');
  const { status, json } = await app.rest('/v1/attestations', {
    apiKey: owner.key,
    body: creation(artifact),
  });
  if (status !== 201) throw new Error(`not created: ${JSON.stringify(json)}`);
  return json as JsonObject & { id: string };
}

async function get(id: string): Promise<JsonObject> {
  return (await app.rest(`/v1/attestations/${id}`, { apiKey: owner.key })).json;
}

t.test('a submission goes from queued, over sealed, to witnessed with its bundle', async (t) => {
  const seal = await app.holdSealing();
  const [witness] = app.witnesses;
  witness!.hold();
  const { id, ...created } = await submit();
  t.same(await get(id), { id, ...created }, 'before it is sealed it is as it was answered');

  await seal();
  const sealed = await until('its batch is published', async () => {
    const found = await get(id);
    return 'batch_id' in found && found;
  });
  t.match(sealed.batch_id, /^btc_[0-9A-HJKMNP-TV-Z]{26}$/);
  t.same(sealed, { id, ...created, batch_id: sealed.batch_id as string }, 'a sealed one stays queued');

  witness!.release();
  await app.drain();
  const { bundle, witnessed_at, ...rest } = await get(id);
  t.same(rest, { ...sealed, status: 'witnessed' });
  t.ok(String(witnessed_at) > String(created.submitted_at), 'it says since when');
  t.match(bundle, { submission: { id, leaf_sha256: created.leaf_sha256 }, batch: { id: sealed.batch_id } });
  const alone = await app.rest(`/v1/attestations/${id}/bundle`, { apiKey: owner.key });
  t.same(bundle, alone.json, 'the bundle is the one that has its own address');
});

t.test('every surface answers the same', async (t) => {
  const { id } = await submit();
  await app.drain();
  const outcomes = await Promise.all(surfaces.map(({ call }) => call(getAttestation, { id }, owner.key)));
  for (const [i, { code, response }] of outcomes.entries()) {
    t.equal(code, 'ok');
    t.same(response, outcomes[0]!.response, surfaces[i]!.name);
  }
});

t.test(
  'the salt opens the commitment that the signed statement holds, and no other metadata does',
  async (t) => {
    const { id } = await submit();
    await app.drain();
    const { metadata, metadata_salt, bundle, ...rest } = await get(id);
    type Envelope = { sigstore_bundle: { dsseEnvelope: { payload: string } } };
    const { payload } = (bundle as unknown as Envelope).sigstore_bundle.dsseEnvelope;
    const statement = parseStatement(Buffer.from(payload, 'base64')) as StatementFields;
    const salt = Buffer.from(String(metadata_salt), 'hex');
    t.equal(statement.commitment, metadataCommitment(salt, utf8(jcs(metadata))));
    t.not(statement.commitment, metadataCommitment(salt, utf8(jcs({ ...(metadata as object), more: 1 }))));
    t.match(statement, {
      submissionId: id,
      project: owner.projectId,
      submittedAt: rest.submitted_at,
      environment: 'live',
      schema: 'purl',
      artifactSha256: (rest.artifact as JsonObject).sha256,
    });
    t.notMatch(Buffer.from(payload, 'base64').toString(), /leakcanary/, 'metadata is in no statement');
    t.notMatch(JSON.stringify(bundle), new RegExp(String(metadata_salt)), 'nor is the salt in a bundle');
  },
);

t.test('an unknown id is not found, and a malformed one invalid', async (t) => {
  const { id } = await submit();
  const absent = [
    NOTHING.submissionId,
    NOTHING.batchId,
    id.toLowerCase(),
    id.slice(0, -1),
    `${id}0`,
    'sub_',
    '*',
    "';--",
  ];
  for (const { name, call } of surfaces) {
    for (const other of absent) {
      const outcome = await call(getAttestation, { id: other }, owner.key);
      t.match(outcome, { code: 'submission.not_found', details: {} }, `${other} by ${name}`);
      t.equal(name === 'REST' ? outcome.status : outcome.grpcCode, name === 'REST' ? 404 : 5);
    }
    const long = await call(getAttestation, { id: 'x'.repeat(65) }, owner.key);
    t.match(long, { code: 'request.invalid', details: { errors: [{ path: '/id' }] } }, name);
    t.equal((await call(getAttestation, { id }, owner.key)).code, 'ok');
  }
});

t.test('concurrent reads return each its submission, and a missing one affects no other', async (t) => {
  const made = await Promise.all(Array.from({ length: 20 }, submit));
  const wanted = made.flatMap(({ id }) => [id, id.toLowerCase(), `${id.slice(0, -2)}\0\0`]);
  const outcomes = await Promise.all(
    wanted.map((id, i) => surfaces[i % surfaces.length]!.call(getAttestation, { id }, owner.key)),
  );
  for (const [i, { code, response }] of outcomes.entries()) {
    t.equal(code, ['ok', 'submission.not_found', 'request.invalid'][i % 3]);
    if (i % 3 === 0) t.equal(response.id, wanted[i]);
  }
});

t.test('a read returns the current state after a change by any process', async (t) => {
  const [{ id }, neighbour] = [await submit(), await submit()];
  await app.drain();
  const before = await get(id);
  t.same(await get(id), before);
  const untouched = await get(neighbour.id);
  const [other] = app.surfaces(app.baseUrls[1]);
  t.equal((await other!.call(deleteAttestation, { id }, owner.key)).code, 'ok');
  const { bundle, ...after } = await get(id);
  t.match(after, { id, metadata_state: 'redacted', metadata: { schema: 'purl' } });
  t.notOk(
    'metadata_salt' in after || JSON.stringify(after).includes('pkg:'),
    'nothing is left of the metadata',
  );
  t.same(bundle, before.bundle, 'the bundle stays');
  t.same(await get(id), { ...after, bundle: bundle! });
  for (const _ of [1, 2]) t.same(await get(neighbour.id), untouched, 'another of the project is what it was');
  const stranger = await newKey(app);
  t.equal((await app.rest(`/v1/attestations/${id}`, { apiKey: stranger.key })).status, 404);
});

t.test('HEAD is answered like GET, without the body', async (t) => {
  const { id } = await submit();
  await app.drain();
  const path = `/v1/attestations/${id}`;
  const got = await app.rest(path, { apiKey: owner.key });
  const head = await app.rest(path, { apiKey: owner.key, method: 'HEAD' });
  t.equal(head.status, 200);
  t.equal(head.body.length, 0);
  for (const header of ['content-type', 'content-length']) t.equal(head.headers[header], got.headers[header]);
  const options = await app.rest(path, { method: 'OPTIONS' });
  t.equal(options.status, 204);
  t.match(options.headers.allow, /^GET, HEAD/);
});

t.test('a key of the other environment is pointed to environments', async (t) => {
  const { id } = await submit();
  const tester = await newKey(app, { environment: Environment.TEST, projectId: owner.projectId });
  const { status, json } = await app.rest(`/v1/attestations/${id}`, { apiKey: tester.key });
  t.equal(status, 404);
  t.match(json, { error: { code: 'submission.not_found', message: /in the API key's environment$/ } });
});

t.test('a creation is seen by every reader at once', async (t) => {
  for (const { call } of surfaces) {
    const created = await call(createAttestation, creation('ef'.repeat(32)), owner.key);
    const { response } = await call(getAttestation, { id: String(created.response.id) }, owner.key);
    t.match(response, { id: created.response.id, leafSha256: created.response.leafSha256 });
  }
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
