/** The build that a submission names: what is taken, stored and returned, and what idempotency keys make of it. */
import { createHmac, randomBytes } from 'node:crypto';
import { fromJson, type JsonObject, toJson } from '@bufbuild/protobuf';
import t from 'tap';
import {
  AttestationService,
  CreateAttestationRequestSchema,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { jcs } from '../../../../src/proof/bytes/jcs.js';
import { deriveKeyRing } from '../../../../src/server/keys/key-ring.js';
import { startApp } from '../../../support/app.js';
import { newKey, type TestKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks, CANARY } from '../../../support/judging/recorder.js';
import { creation } from '../../rpc/samples.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const owner = await newKey(app);
const { createAttestation, batchCreateAttestations, getAttestation } = AttestationService.method;

const digest = () => randomBytes(32).toString('hex');
const keyed = () => ({ 'idempotency-key': randomBytes(8).toString('hex') });
type Result = { outcome: string; submission?: JsonObject; error?: { code: string; details: JsonObject } };

const GOOD = [
  'a',
  'ci-4711',
  `${CANARY} #12 of "main" \\ {1,NULL} `,
  'NULL',
  'ünïcode — 💣\u2028',
  '💣'.repeat(128),
];
const BAD = [' a', '\u00a0a', 'a\n', 'a\tb', 'a\0b', '\u007f', 'a\u0085', 'x'.repeat(129), '💣'.repeat(129)];

t.test('a build is stored and returned as sent, alone and in batches, on every surface', async (t) => {
  for (const { name, call } of surfaces) {
    for (const build of GOOD) {
      const created = await call(createAttestation, { ...creation(digest()), build }, owner.key);
      t.equal(created.response.build, build, name);
      const { response } = await call(getAttestation, { id: String(created.response.id) }, owner.key);
      t.equal(response.build, build, name);
    }
    const items = [...GOOD.map((build) => ({ ...creation(digest()), build })), creation(digest())];
    const { response } = await call(batchCreateAttestations, { items }, owner.key);
    const results = response.results as unknown as Result[];
    t.same(
      results.map(({ submission }) => submission?.build),
      [...GOOD, undefined],
      name,
    );
  }
});

t.test('one that is no label is an error at its place, alone and in batches', async (t) => {
  for (const { name, call } of surfaces) {
    for (const build of BAD) {
      const what = `${JSON.stringify(build)} by ${name}`;
      const alone = await call(createAttestation, { ...creation(digest()), build }, owner.key);
      const expected = { code: 'request.invalid', details: { errors: [{ path: '/build' }] } };
      t.match(alone, expected, what);
      const items = [{ ...creation(digest()), build }, creation(digest())];
      const { response } = await call(batchCreateAttestations, { items }, owner.key);
      t.match(response.results, [{ error: expected }, { outcome: 'ITEM_OUTCOME_CREATED' }], what);
    }
  }
  for (const build of ['', 7, ['a'], { a: 1 }, true]) {
    const body = { ...creation(digest()), build };
    const { status, json } = await app.rest('/v1/attestations', { apiKey: owner.key, body });
    t.match([status, json], [400, { error: { details: { errors: [{ path: '/build' }] } } }]);
  }
});

t.test('a submission without a build has no such member', async (t) => {
  const body = creation(digest());
  const { status, json } = await app.rest('/v1/attestations', { apiKey: owner.key, body });
  t.equal(status, 201);
  t.notOk('build' in json);
});

async function storedHash({ projectId }: TestKey, headers: { 'idempotency-key': string }): Promise<string> {
  const [row] = await app.pool<{ hash: string }[]>`
    SELECT encode(i.request_hash, 'hex') AS hash FROM idempotency_key i
    JOIN api_key k ON k.id = i.api_key_id AND k.project_id = ${projectId} WHERE key = ${headers['idempotency-key']}`;
  return row?.hash ?? '';
}

t.test('the hash of a request has its build; without one it is that of former versions', async (t) => {
  const [{ key }] = deriveKeyRing(app.config.secrets.secretKeys, 'idempotency');
  const hashOf = (text: string) =>
    createHmac('sha256', key)
      .update(`attestation.v1.AttestationService/CreateAttestation\n${text}`)
      .digest('hex');
  const sha256 = digest();
  const metadata = { schema: 'purl', purl: 'pkg:npm/left-pad@1.3.0' };
  const former = `{"artifact":{"sha256":"${sha256}"},"metadata":{"purl":"${metadata.purl}","schema":"purl"}}`;
  const headers = keyed();
  await surfaces[0]!.call(createAttestation, creation(sha256, metadata), owner.key, headers);
  t.equal(await storedHash(owner, headers), hashOf(former));
  for (const build of GOOD) {
    const headers = keyed();
    const message = { ...creation(sha256, metadata), build };
    await surfaces[0]!.call(createAttestation, message, owner.key, headers);
    const request = fromJson(CreateAttestationRequestSchema, message);
    const text = jcs(toJson(CreateAttestationRequestSchema, request));
    t.equal(await storedHash(owner, headers), hashOf(text), build);
  }
});

t.test('the same key with another build, with one, or without it is a conflict; else a replay', async (t) => {
  for (const { name, call } of surfaces) {
    const headers = keyed();
    const message = { ...creation(digest()), build: 'ci-1' };
    const send = (build?: string) =>
      call(createAttestation, { ...message, build } as never, owner.key, headers);
    const item = (build?: string) =>
      call(
        batchCreateAttestations,
        { items: [{ ...message, build, idempotencyKey: headers['idempotency-key'] }] } as never,
        owner.key,
      );
    const { response } = await send('ci-1');
    const again = await send('ci-1');
    t.same([again.response.id, again.response.build], [response.id, 'ci-1'], name);
    t.equal(again.headers['idempotent-replayed'], 'true', name);
    const replayed = ((await item('ci-1')).response.results as unknown as Result[])[0];
    t.match(replayed, { outcome: 'ITEM_OUTCOME_REPLAYED', submission: { id: response.id, build: 'ci-1' } });
    for (const other of ['ci-2', 'CI-1', undefined]) {
      t.equal((await send(other)).code, 'idempotency.key_reused', `${other} by ${name}`);
      const { response: batch } = await item(other);
      t.match(batch.results, [{ error: { code: 'idempotency.key_reused' } }], `${other} by ${name}`);
    }
    const two = { ...message, idempotencyKey: `${headers['idempotency-key']}-2` };
    const { response: repeats } = await call(
      batchCreateAttestations,
      { items: [two, two, { ...two, build: 'ci-2' }] },
      owner.key,
    );
    t.match(repeats.results, [
      { outcome: 'ITEM_OUTCOME_CREATED' },
      { outcome: 'ITEM_OUTCOME_REPLAYED' },
      { error: { code: 'idempotency.key_reused' } },
    ]);
  }
});

t.test('a build is no part of statement, leaf and proof', async (t) => {
  const build = `build-${digest()}`;
  const message = { ...creation(digest()), build };
  const created = await surfaces[0]!.call(createAttestation, message, owner.key);
  await app.drain();
  const { id } = created.response;
  const { json, status } = await app.rest(`/v1/attestations/${id}/bundle`, { apiKey: owner.key });
  t.equal(status, 200);
  t.notMatch(JSON.stringify(json), build);
  const payload = JSON.stringify(json).match(/"payload":"([^"]+)"/)?.[1] ?? '';
  t.notMatch(Buffer.from(payload, 'base64').toString(), build);
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
