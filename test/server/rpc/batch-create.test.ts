/** Many submissions in one call, by REST, Connect and gRPC: what each item gets is what it would have got alone. */
import { randomBytes } from 'node:crypto';
import { create, type JsonObject, toBinary } from '@bufbuild/protobuf';
import { Code } from '@connectrpc/connect';
import t, { type Test } from 'tap';
import { AttestationService, ValidationMode } from '../../../gen/attestation/v1/attestations_pb.js';
import { startApp } from '../../support/app.js';
import type { Outcome } from '../../support/calling/surfaces.js';
import { newKey, revokedKey, type TestKey } from '../../support/calling/test-keys.js';
import { creation, INVALID, METADATA } from './samples.js';

const { createAttestation, batchCreateAttestations } = AttestationService.method;
const app = await startApp(t);
const surfaces = app.surfaces();
t.teardown(() => {
  for (const surface of surfaces) surface.close();
});
const owner = await newKey(app);

type Item = Record<string, unknown>;
type Result = {
  outcome: string;
  submission?: JsonObject;
  error?: { code: string; message: string; details: JsonObject; requestId: string };
  retryAfter?: number;
};

const digest = () => randomBytes(32).toString('hex');
const newKeyText = () => randomBytes(8).toString('hex');
const good = (more: Item = {}): Item => ({ ...creation(digest()), ...more });
const resultsOf = ({ response }: Outcome) => response.results as unknown as Result[];
const outcomesOf = (outcome: Outcome) =>
  resultsOf(outcome).map(({ outcome, error }) => error?.code ?? outcome.replace('ITEM_OUTCOME_', ''));

/** Runs a test on every surface. */
function onEach(name: string, run: (t: Test, send: Send, key: TestKey) => Promise<void>): void {
  t.test(name, async (t) => {
    for (const surface of surfaces) {
      await t.test(surface.name, async (t) => {
        const send: Send = (items, key = owner) =>
          surface.call(batchCreateAttestations, { items } as never, key.key);
        await run(t, send, owner);
      });
    }
  });
}
type Send = (items: readonly unknown[], key?: TestKey) => Promise<Outcome>;

onEach('items are created in order, and one that fails leaves the others alone', async (t, send) => {
  const items = [
    good(),
    good({ metadata: { schema: 'nothing-like-it' } }),
    good({ artifact: { sha256: 'A'.repeat(64) } }),
    good({ metadata: INVALID }),
    good({ metadata: INVALID, validation: ValidationMode.LENIENT }),
    good({ artifact: { sha256: 'short' } }),
    good({ idempotencyKey: 'two words' }),
    good(),
  ];
  const answer = await send(items);
  t.equal(answer.code, 'ok');
  t.same(outcomesOf(answer), [
    'CREATED',
    'submission.unknown_schema',
    'CREATED',
    'submission.invalid_metadata',
    'CREATED',
    'request.invalid',
    'idempotency.key_invalid',
    'CREATED',
  ]);
  t.match(answer.response, { created: 4, failed: 4 });
  const results = resultsOf(answer);
  t.match(results[2]?.submission, { artifact: { sha256: 'a'.repeat(64) } });
  t.match(results[4]?.submission, { warnings: [{ code: 'submission.invalid_metadata' }] });
  const problem = { path: '/artifact/sha256', message: 'must be 64 hex digits' };
  t.match(results[5]?.error, { details: { errors: [problem], total: 1 }, requestId: answer.requestId });
  const indexes = results.flatMap(({ submission }) => (submission ? [Number(submission.logIndex)] : []));
  t.same(
    indexes,
    [...indexes].sort((a, b) => a - b),
    'in the order of the items',
  );
});

onEach('an item gets the very error that it gets alone', async (t, send) => {
  const bad: Item[] = [
    good({ metadata: undefined }),
    good({ metadata: {} }),
    good({ artifact: undefined }),
    good({ metadata: { schema: 'purl', purl: 'no' } }),
    good({ metadata: { schema: 'purl', deep: nested(40) } }),
    good({ metadata: { ...METADATA, long: 'x'.repeat(65_536) } }),
    good({ metadata: { ...METADATA, text: 'a\u0000b' } }),
  ];
  const together = await send(bad);
  const [surface] = surfaces.filter(({ name }) => name === t.name);
  for (const [i, item] of bad.entries()) {
    const alone = await surface?.call(createAttestation, item as never, owner.key);
    const { error } = resultsOf(together)[i] ?? {};
    t.equal(error?.code, alone?.code);
    // Only metadata of gRPC is cut to what headers may hold.
    if (t.name === 'REST') t.same([error?.message, error?.details], [alone?.message, alone?.details]);
  }
});

onEach('keys of items are those of single creations, on both ways', async (t, send) => {
  const odd = {
    schema: 'purl',
    purl: 'pkg:npm/a',
    'é"\\': [1e21, -0, 0.1, { b: null, a: '\u2028\u{1f600}' }],
  };
  const items = [
    good(),
    good({ metadata: odd, validation: ValidationMode.LENIENT }),
    good({ artifact: { sha256: 'AB'.repeat(32) }, validation: ValidationMode.STRICT }),
    good({ metadata: INVALID, validation: ValidationMode.LENIENT }),
  ].map((item): Item => ({ ...item, idempotencyKey: newKeyText() }));
  const [surface] = surfaces.filter(({ name }) => name === t.name);
  const single = async ({ idempotencyKey, ...item }: Item) =>
    surface?.call(createAttestation, item as never, owner.key, {
      'idempotency-key': String(idempotencyKey),
    });
  const alone = await Promise.all(items.slice(1).map(single));
  const answer = await send(items);
  t.same(outcomesOf(answer), ['CREATED', 'REPLAYED', 'REPLAYED', 'REPLAYED']);
  t.same(
    resultsOf(answer)
      .slice(1)
      .map(({ submission }) => submission?.id),
    alone.map((one) => one?.response.id),
  );
  const again = await single(items[0] as Item);
  t.equal(again?.headers['idempotent-replayed'], 'true');
  t.equal(again?.response.id, resultsOf(answer)[0]?.submission?.id);
  t.same(new Set(outcomesOf(await send(items))), new Set(['REPLAYED']));
  const other = { ...items[2], artifact: { sha256: digest() } };
  t.same(outcomesOf(await send([other, good()])), ['idempotency.key_reused', 'CREATED']);
});

onEach('of two items with one key the second is a replay, or another request', async (t, send) => {
  const key = newKeyText();
  const item = good({ idempotencyKey: key });
  const answer = await send([item, item, good({ idempotencyKey: key }), item]);
  t.same(outcomesOf(answer), ['CREATED', 'REPLAYED', 'idempotency.key_reused', 'REPLAYED']);
  const [first, , , last] = resultsOf(answer);
  t.equal(last?.submission?.id, first?.submission?.id);
  const reused = await send([good({ idempotencyKey: key }), item, item]);
  t.same(outcomesOf(reused), ['idempotency.key_reused', 'REPLAYED', 'REPLAYED'], 'as each would get alone');
  const failing = good({ idempotencyKey: newKeyText(), metadata: INVALID });
  const failed = await send([failing, failing]);
  t.same(outcomesOf(failed), ['submission.invalid_metadata', 'submission.invalid_metadata']);
});

onEach('items beyond a window fail by themselves, and known ones are replayed', async (t, send) => {
  const key = await newKey(app, { limits: { perDay: 5 } });
  const items = Array.from({ length: 8 }, () => good({ idempotencyKey: newKeyText() }));
  const answer = await send(items, key);
  const [limited, created] = ['rate_limit.exceeded', 'CREATED'];
  t.same(outcomesOf(answer), [...Array(5).fill(created), ...Array(3).fill(limited)]);
  t.match(resultsOf(answer)[7], {
    retryAfter: Number,
    error: { details: { bucket: 'submissions', limit: 5, window: 86_400 } },
  });
  t.equal(answer.headers['x-ratelimit-remaining'], '0');
  const again = await send([...items].reverse(), key);
  t.same(outcomesOf(again), [...Array(3).fill(limited), ...Array(5).fill('REPLAYED')]);
  t.same(outcomesOf(await send([good()], key)), [limited]);
});

onEach('a thousand items are created, and one more is none', async (t, send) => {
  const items = Array.from({ length: 1_000 }, () => good());
  const answer = await send(items);
  t.match(answer.response, { created: 1_000 });
  const ids = resultsOf(answer).map(({ submission }) => submission?.id);
  t.equal(new Set(ids).size, 1_000);
  t.same(
    resultsOf(answer).map(({ submission }) => (submission?.artifact as JsonObject | undefined)?.sha256),
    items.map(({ artifact }) => (artifact as JsonObject).sha256),
  );
  const before = await countRows();
  const beyond = await send([...items, good()]);
  t.equal(beyond.code, 'request.invalid');
  t.match(beyond.details, { errors: [{ path: '/items' }] });
  const none = await send([]);
  t.match(none.details, { errors: [{ path: '/items', message: 'must not be empty' }] });
  t.equal(await countRows(), before);
});

onEach('without key, scope or room nothing is read', async (t, send) => {
  t.equal((await send([good()], await revokedKey(app))).code, 'auth.invalid_key');
  const reader = await newKey(app, { scopes: ['attestations:read'] });
  t.equal((await send([good()], reader)).code, 'auth.insufficient_scope');
});

t.test('hostile bodies of REST are rejected whole, and nothing of them is stored', async (t) => {
  const item = JSON.stringify(creation('1'.repeat(64)));
  const before = await countRows();
  const send = async (body: string | Uint8Array, headers = {}) =>
    app.rest('/v1/attestations:batch', { apiKey: owner.key, body, headers });
  const malformed = [
    '{',
    '{"items"',
    '{"items":',
    '{"items":[',
    `{"items":[${item}`,
    `{"items":[${item},`,
    `{"items":[${item},]}`,
    `{"items":[,${item}]}`,
    `{"items":[${item},,${item}]}`,
    `{"items":[${item}]`,
    `{"items":[${item}]}}`,
    `{"items":[${item}]} x`,
    `{"items":[${item},{"artifact":}]}`,
    `{"items":[${item},{]}`,
    `{"items":[${item},"open]}`,
    `{items:[${item}]}`,
    `{"items":[${item} ${item}]}`,
    `\u00ef\u00bb\u00bf{"items":[${item}]}`,
    `{"items":[${item},${'['.repeat(100)}${']'.repeat(100)}]}`,
  ];
  for (const body of [
    ...malformed,
    Buffer.from([...Buffer.from('{"items":["'), 0xff, ...Buffer.from('"]}')]),
  ]) {
    const { status, json } = await send(body);
    t.match(
      { status, json },
      { status: 400, json: { error: { code: 'request.malformed_json' } } },
      String(body),
    );
  }
  const invalid: [body: string, path: string][] = [
    ['', '/items'],
    ['{}', '/items'],
    ['[]', ''],
    ['"x"', ''],
    ['{"items":[]}', '/items'],
    ['{"items":{}}', '/items'],
    ['{"items":null}', '/items'],
    [`{"items":[${item}],"items":[]}`, '/items'],
    [`{"items":[${item}],"more":1}`, '/more'],
    [`{"more":1,"items":[${item}]}`, '/more'],
    [`{"items":[${`${item},`.repeat(1_000)}${item}]}`, '/items'],
  ];
  for (const [body, path] of invalid) {
    const { status, json } = await send(body);
    t.match({ status, json }, { status: 400, json: { error: { code: 'request.invalid' } } }, body);
    t.match((json.error as JsonObject).details, { errors: [{ path }] }, body.slice(0, 60));
  }
  const large = await send(`{"items":[${' '.repeat(3 * 1024 * 1024 + 8_192)}]}`);
  t.match(large, { status: 413, json: { error: { code: 'request.too_large' } } });
  t.equal((await send(`{"items":[${item}]}`, { 'content-type': 'text/plain' })).status, 415);
  t.equal(await countRows(), before);
});

t.test('truncated bodies of Connect and gRPC-Web are rejected whole, or are shorter batches', async (t) => {
  const batch = (digests: readonly string[]) => ({ items: digests.map((sha256) => creation(sha256)) });
  const { input } = batchCreateAttestations;
  const bytes = toBinary(input, create(input, batch(['4'.repeat(64), '5'.repeat(64)]) as never));
  const [firstItem] = [toBinary(input, create(input, batch(['4'.repeat(64)]) as never)).length];
  const text = Buffer.from(JSON.stringify(batch(['6'.repeat(64), '7'.repeat(64)])));
  const before = await countRows();
  for (let length = 1; length < bytes.length; length += 3) {
    const cut = bytes.subarray(0, length);
    if (length === firstItem) continue;
    const { status, code } = await sendRaw('application/proto', cut);
    t.same({ status, code }, { status: 400, code: 'invalid_argument' }, `${length} bytes of a message`);
    t.equal((await sendRaw('application/grpc-web+proto', framed(cut))).grpcStatus, Code.InvalidArgument);
    t.equal(
      (await sendRaw('application/grpc-web+proto', framed(bytes).subarray(0, length + 4))).grpcStatus,
      Code.InvalidArgument,
    );
  }
  for (let length = 1; length < text.length; length += 7) {
    const { status, code } = await sendRaw('application/json', text.subarray(0, length));
    t.same({ status, code }, { status: 400, code: 'invalid_argument' }, `${length} bytes of JSON`);
  }
  const large = Buffer.alloc(3 * 1024 * 1024 + 8_192, ' ');
  for (const type of ['application/proto', 'application/json']) {
    t.equal((await sendRaw(type, large)).code, 'resource_exhausted', type);
  }
  t.equal((await sendRaw('application/grpc-web+proto', framed(large))).grpcStatus, Code.ResourceExhausted);
  t.equal(await countRows(), before);
  t.equal((await sendRaw('application/proto', bytes.subarray(0, firstItem))).status, 200);
  t.equal(await countRows(), before + 1);
});

t.test('items of other shapes fail by themselves on REST', async (t) => {
  const item = creation('2'.repeat(64));
  const shapes = [
    7,
    null,
    'x',
    [],
    {},
    { ...item, more: 1 },
    { ...item, metadata: [] },
    { ...item, artifact: 'x' },
  ];
  const twice = `{"artifact":{"sha256":"${'3'.repeat(64)}","sha256":"x"},"metadata":{"schema":"purl"}}`;
  const inexact = `{"artifact":{"sha256":"${'3'.repeat(64)}"},"metadata":{"schema":"purl","n":9007199254740993}}`;
  const texts = [...shapes.map((shape) => JSON.stringify(shape)), twice, inexact, JSON.stringify(item)];
  const { status, json } = await app.rest('/v1/attestations:batch', {
    apiKey: owner.key,
    body: ` { "items" : [ ${texts.join(' , ')} ] } `,
  });
  t.equal(status, 200);
  const results = json.results as { outcome: string; error?: { code: string; details: JsonObject } }[];
  t.same(
    results.map(({ error }) => error?.code),
    [...texts.slice(1).map(() => 'request.invalid'), undefined],
  );
  const pathOf = (i: number) =>
    (results[i]?.error?.details.errors as { path: string }[] | undefined)?.[0]?.path;
  t.same([0, 5, 6, 7, 8, 9].map(pathOf), [
    '',
    '/more',
    '/metadata',
    '/artifact',
    '/artifact/sha256',
    '/metadata/n',
  ]);
});

/** Sends a body as it is, by the RPC's path. */
async function sendRaw(type: string, body: Uint8Array) {
  const url = `${app.baseUrl}/${AttestationService.typeName}/${batchCreateAttestations.name}`;
  const headers = { authorization: `Bearer ${owner.key}`, 'content-type': type };
  const response = await fetch(url, { method: 'POST', headers, body: Buffer.from(body) });
  const answer = await response.text();
  const grpcStatus = Number(response.headers.get('grpc-status') ?? /grpc-status: ?(\d+)/i.exec(answer)?.[1]);
  const { code } = (answer.startsWith('{') ? JSON.parse(answer) : {}) as { code?: string };
  return { status: response.status, code, grpcStatus };
}

/** A message in a frame of gRPC: no compression, its length, its bytes. */
function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function nested(depth: number): JsonObject {
  return depth === 0 ? {} : { a: nested(depth - 1) };
}

async function countRows(): Promise<number> {
  const [row] = await app.pool<{ n: number }[]>`SELECT count(*)::integer AS n FROM submission`;
  return row?.n ?? 0;
}
