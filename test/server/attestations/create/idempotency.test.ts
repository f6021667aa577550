import { type DescMethod, getOption, type JsonObject } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import { rules } from '../../../../gen/attestation/options/v1/options_pb.js';
import { AttestationService, ValidationMode } from '../../../../gen/attestation/v1/attestations_pb.js';
import { startApp } from '../../../support/app.js';
import { exchangeRaw, isEnvelope } from '../../../support/calling/raw-http.js';
import { keyedMethods, rpcName } from '../../../support/calling/rpcs.js';
import { newKey, type TestKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks, CANARY } from '../../../support/judging/recorder.js';
import { until } from '../../../support/until.js';
import {
  creation,
  type Known,
  METADATA,
  makeChangeable,
  makeExports,
  makeWebhooks,
  NOTHING,
  sampleOf,
} from '../../rpc/samples.js';

const app = await startApp(t, { apis: 2 });
const surfaces = app.surfaces();
const { createAttestation, getAttestation } = AttestationService.method;
const ARTIFACT = 'ab'.repeat(32);
const OTHER = 'cd'.repeat(32);

let keys = 0;
/** Headers with an idempotency key that no other test has. */
function freshKey(): { 'idempotency-key': string } {
  return { 'idempotency-key': `key-${keys++}` };
}

async function countOf({ projectId }: TestKey): Promise<number> {
  const rows = await app.pool`SELECT id FROM named_submission WHERE project_id = ${projectId}`;
  return rows.length;
}

t.test('a retried creation is replayed on every surface, and marked as a replay', async (t) => {
  const seal = await app.holdSealing();
  for (const first of surfaces) {
    const owner = await newKey(app);
    const headers = freshKey();
    const created = await first.call(createAttestation, creation(ARTIFACT), owner.key, headers);
    t.equal(created.code, 'ok');
    t.equal(created.headers['idempotent-replayed'], undefined);
    for (const again of surfaces) {
      const replayed = await again.call(createAttestation, creation(ARTIFACT), owner.key, headers);
      const what = `created by ${first.name}, again by ${again.name}`;
      t.same(replayed.response, created.response, what);
      t.equal(replayed.headers['idempotent-replayed'], 'true', what);
      t.equal(replayed.status, again.name === 'REST' ? 201 : 0, what);
    }
    t.equal(await countOf(owner), 1);
  }
  await seal();
});

t.test('any process answers a retry, with the present state of the submission', async (t) => {
  const owner = await newKey(app);
  const headers = freshKey();
  const invalid = {
    ...creation(ARTIFACT, { schema: 'purl', note: CANARY }),
    validation: ValidationMode.LENIENT,
  };
  const [here] = surfaces;
  const [there] = app.surfaces(app.baseUrls[1]);
  const created = await here!.call(createAttestation, invalid, owner.key, headers);
  await app.drain();
  const replayed = await there!.call(createAttestation, invalid, owner.key, headers);
  const got = await there!.call(getAttestation, { id: String(created.response.id) }, owner.key);
  const { bundle, ...without } = got.response;
  t.ok(bundle);
  t.equal(replayed.response.status, 'SUBMISSION_STATUS_WITNESSED');
  t.same(replayed.response.warnings, created.response.warnings);
  t.same(replayed.response, { ...without, warnings: created.response.warnings });
});

t.test('a hundred equal creations at once, at two processes, make one submission', async (t) => {
  const owner = await newKey(app);
  const headers = freshKey();
  const callers = app.baseUrls.flatMap((baseUrl) => app.surfaces(baseUrl));
  const outcomes = await Promise.all(
    Array.from({ length: 100 }, (_, i) =>
      callers[i % callers.length]!.call(createAttestation, creation(ARTIFACT), owner.key, headers),
    ),
  );
  t.same(new Set(outcomes.map(({ code }) => code)), new Set(['ok']));
  t.equal(new Set(outcomes.map(({ response }) => response.id)).size, 1);
  t.equal(outcomes.filter((outcome) => outcome.headers['idempotent-replayed'] === 'true').length, 99);
  t.equal(await countOf(owner), 1);
});

t.test(
  'a hundred concurrent creations with one key and different messages create one; the others get an error',
  async (t) => {
    const owner = await newKey(app);
    const headers = freshKey();
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        surfaces[0]!.call(createAttestation, creation(String(i).padStart(64, '0')), owner.key, headers),
      ),
    );
    const codes = outcomes.map(({ code }) => code).sort();
    t.same(codes, [...Array<string>(99).fill('idempotency.key_reused'), 'ok']);
    t.equal(await countOf(owner), 1);
  },
);

t.test('the same key with any other message is rejected', async (t) => {
  const owner = await newKey(app);
  const headers = freshKey();
  const send = (message: object, at: (typeof surfaces)[number]) =>
    at.call(createAttestation, message, owner.key, headers);
  await send(creation(ARTIFACT), surfaces[0]!);
  for (const surface of surfaces) {
    for (const message of [
      creation(OTHER),
      creation(ARTIFACT, { ...METADATA, more: 1 }),
      creation(ARTIFACT, { ...METADATA, purl: `${METADATA.purl}0` }),
      { ...creation(ARTIFACT), validation: ValidationMode.LENIENT },
    ]) {
      const outcome = await send(message, surface);
      t.equal(outcome.code, 'idempotency.key_reused', surface.name);
      t.equal(surface.name === 'REST' ? outcome.status : outcome.grpcCode, surface.name === 'REST' ? 422 : 9);
    }
    t.equal((await send(creation(ARTIFACT), surface)).code, 'ok', 'the first message is still answered');
  }
  const reordered = `{"metadata":{"purl":"${METADATA.purl}","schema":"purl"}, "artifact":{"sha256":"${ARTIFACT}"}}`;
  const answer = await app.rest('/v1/attestations', { apiKey: owner.key, headers, body: reordered });
  t.equal(answer.headers['idempotent-replayed'], 'true', 'how it is spelled makes no difference');
  t.equal(await countOf(owner), 1);
});

t.test('a digest in the other case is the same request', async (t) => {
  for (const { name, call } of surfaces) {
    const owner = await newKey(app);
    const headers = freshKey();
    const first = await call(createAttestation, creation(ARTIFACT.toUpperCase()), owner.key, headers);
    const again = await call(createAttestation, creation(ARTIFACT), owner.key, headers);
    t.equal(again.code, 'ok', name);
    t.equal(again.response.id, first.response.id, name);
    t.equal(again.headers['idempotent-replayed'], 'true', name);
  }
});

t.test('a key counts for its API key alone', async (t) => {
  const one = await newKey(app);
  const sibling = await newKey(app, { projectId: one.projectId });
  const headers = freshKey();
  const [rest] = surfaces;
  const ids = await Promise.all(
    [one, sibling, await newKey(app)].map(async ({ key }) => {
      const { response } = await rest!.call(createAttestation, creation(ARTIFACT), key, headers);
      return response.id;
    }),
  );
  t.equal(new Set(ids).size, 3);
});

t.test('a rejected creation leaves its key free', async (t) => {
  const owner = await newKey(app);
  const headers = freshKey();
  for (const { name, call } of surfaces) {
    const refused = await call(createAttestation, creation(ARTIFACT, { schema: 'purl' }), owner.key, headers);
    t.equal(refused.code, 'submission.invalid_metadata', name);
    const malformed = await call(createAttestation, creation('x'), owner.key, headers);
    t.equal(malformed.code, 'request.invalid', name);
  }
  const fixed = await app.rest('/v1/attestations', { apiKey: owner.key, headers, body: creation(ARTIFACT) });
  t.equal(fixed.status, 201);
  t.equal(fixed.headers['idempotent-replayed'], undefined);
});

t.test('a key is 1 to 255 visible ASCII characters, bare or quoted', async (t) => {
  const owner = await newKey(app);
  const send = async (key: string | string[], body: JsonObject = creation(ARTIFACT)) =>
    app.rest('/v1/attestations', { apiKey: owner.key, headers: { 'idempotency-key': key }, body });
  for (const key of [
    'a',
    '!~',
    'x'.repeat(255),
    `"${'y'.repeat(255)}"`,
    '"with \\" and \\\\"'.replaceAll(' ', ''),
  ]) {
    t.equal((await send(key)).status, 201, key);
  }
  const bare = await send('the-same');
  t.equal((await send('"the-same"')).json.id, bare.json.id);
  for (const key of ['', '""', ' ', 'x'.repeat(256), 'a b', 'a\tb', 'é', ['a', 'b']]) {
    const answer = await send(key);
    t.equal(answer.status, 400, JSON.stringify(key));
    t.match(answer.json, { error: { code: 'idempotency.key_invalid' } });
  }
  const { port } = new URL(app.baseUrl);
  for (const character of ['\x01', '\x7f', '\0']) {
    const head = `POST /v1/attestations HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${owner.key}\r\nconnection: close\r\n`;
    const text = await exchangeRaw(
      Number(port),
      `${head}idempotency-key: a${character}b\r\ncontent-length: 0\r\n\r\n`,
    );
    isEnvelope(t, text, 400, 'request.invalid');
  }
  for (const { name, call } of surfaces.slice(1)) {
    for (const key of ['x'.repeat(256), 'a b']) {
      const outcome = await call(createAttestation, creation(ARTIFACT), owner.key, {
        'idempotency-key': key,
      });
      t.match(outcome, { code: 'idempotency.key_invalid', grpcCode: 3 }, name);
    }
  }
});

t.test('a key is forgotten once its retention has passed', async (t) => {
  const owner = await newKey(app);
  const headers = freshKey();
  const send = () => app.rest('/v1/attestations', { apiKey: owner.key, headers, body: creation(ARTIFACT) });
  const first = await send();
  await app.pool`UPDATE idempotency_key SET created_at = created_at - interval '24 hours' WHERE api_key_id = ${owner.id}`;
  const second = await send();
  t.equal(second.status, 201);
  t.not(second.json.id, first.json.id);
  t.equal((await send()).json.id, second.json.id, 'and from then on it stands for the second');
});

t.test('a duplicate waits for the first while that is under way', async (t) => {
  const owner = await newKey(app);
  const holder = await app.pool.reserve();
  await holder`SELECT pg_advisory_lock(hashtextextended(${`${owner.id} held`}, 0))`;
  let isAnswered = false;
  const waiting = app
    .rest('/v1/attestations', {
      apiKey: owner.key,
      headers: { 'idempotency-key': 'held' },
      body: creation(ARTIFACT),
    })
    .finally(() => {
      isAnswered = true;
    });
  // Another creation of the same process is stored meanwhile, so the one that waits has been tried.
  await until('a later creation is stored', async () => {
    const { status } = await app.rest('/v1/attestations', { apiKey: owner.key, body: creation(OTHER) });
    return status === 201;
  });
  t.equal(isAnswered, false);
  await holder`SELECT pg_advisory_unlock_all()`;
  holder.release();
  t.equal((await waiting).status, 201);
});

t.test('every RPC that changes something is done once for its key, wherever it is sent again', async (t) => {
  const methods = await keyedMethods();
  const isReading = ({ idempotency }: DescMethod) =>
    idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  for (const method of methods) {
    const { idempotentByKey, batchOf } = getOption(method, rules);
    // The items of a batch have keys of their own, and a statement of SCITT is the same entry whenever it is sent.
    const hasOwnKeys = batchOf !== '' || rpcName(method) === 'ScittService/RegisterStatement';
    t.equal(idempotentByKey, !isReading(method) && !hasOwnKeys, rpcName(method));
  }
  const owner = await newKey(app);
  const [rest] = surfaces;
  const known: Known = {
    ...NOTHING,
    ...(await makeChangeable(rest!, owner.key)),
    ...(await makeWebhooks(rest!, owner.key)),
    ...(await makeExports(t, rest!, owner.key)),
  };
  const elsewhere = app.surfaces(app.baseUrls[1]);
  for (const [i, method] of methods.filter((each) => getOption(each, rules).idempotentByKey).entries()) {
    const headers = freshKey();
    const input = sampleOf(method, known);
    const first = await surfaces[i % surfaces.length]!.call(method, input, owner.key, headers);
    t.equal(first.code, 'ok', rpcName(method));
    t.equal(first.headers['idempotent-replayed'], undefined);
    for (const again of elsewhere) {
      const what = `${rpcName(method)} again by ${again.name}`;
      const replayed = await again.call(method, input, owner.key, headers);
      t.equal(replayed.code, 'ok', what);
      t.equal(replayed.headers['idempotent-replayed'], 'true', what);
      t.equal(replayed.response.id, first.response.id, what);
    }
    const other = await rest!.call(createAttestation, creation(OTHER), owner.key, headers);
    t.equal(other.code, 'idempotency.key_reused', `another RPC under the key of ${rpcName(method)}`);
  }
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
