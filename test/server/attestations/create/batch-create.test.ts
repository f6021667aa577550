/** Many submissions in one call, by REST, Connect and gRPC: what each item gets is what it would have got alone. */
import { randomBytes } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import t, { type Test } from 'tap';
import { AttestationService, ValidationMode } from '../../../../gen/attestation/v1/attestations_pb.js';
import { startApp } from '../../../support/app.js';
import type { Outcome } from '../../../support/calling/surfaces.js';
import { newKey, revokedKey, type TestKey } from '../../../support/calling/test-keys.js';
import { creation, INVALID, METADATA } from '../../rpc/samples.js';

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
        const send: Send = (items, key = owner, headers = {}) =>
          surface.call(batchCreateAttestations, { items } as never, key.key, headers);
        await run(t, send, owner);
      });
    }
  });
}
type Send = (items: readonly unknown[], key?: TestKey, headers?: Record<string, string>) => Promise<Outcome>;

onEach("items without a key have the call's and their place", async (t, send) => {
  const key = newKeyText();
  const headers = { 'idempotency-key': key };
  const own = newKeyText();
  const items = [good(), good({ idempotencyKey: own }), good()];
  t.same(outcomesOf(await send(items, owner, headers)), ['CREATED', 'CREATED', 'CREATED']);
  t.same(outcomesOf(await send(items, owner, { 'idempotency-key': `"${key}"` })), [
    'REPLAYED',
    'REPLAYED',
    'REPLAYED',
  ]);
  t.same(
    outcomesOf(await send([good(), items[1], good({ idempotencyKey: `${key}#0` }), good()], owner, headers)),
    ['idempotency.key_reused', 'REPLAYED', 'idempotency.key_reused', 'CREATED'],
  );
  t.same(outcomesOf(await send([{ ...items[2], idempotencyKey: `${key}#2` }])), ['REPLAYED']);
  const longest = 'k'.repeat(251 - key.length) + key;
  t.same(outcomesOf(await send([good()], owner, { 'idempotency-key': longest })), ['CREATED']);
  for (const refused of [`${longest}k`, 'two words']) {
    const answer = await send([good()], owner, { 'idempotency-key': refused });
    t.equal(answer.code, 'idempotency.key_invalid');
  }
});

onEach('items are created in order, and one that fails does not affect the others', async (t, send) => {
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

onEach('an item gets the same error as a single creation', async (t, send) => {
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

onEach('a thousand items are created, and a batch of one more is rejected', async (t, send) => {
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

onEach('without key or scope nothing is read', async (t, send) => {
  t.equal((await send([good()], await revokedKey(app))).code, 'auth.invalid_key');
  const reader = await newKey(app, { scopes: ['attestations:read'] });
  t.equal((await send([good()], reader)).code, 'auth.insufficient_scope');
});

function nested(depth: number): JsonObject {
  return depth === 0 ? {} : { a: nested(depth - 1) };
}

async function countRows(): Promise<number> {
  const [row] = await app.pool<{ n: number }[]>`SELECT count(*)::integer AS n FROM submission`;
  return row?.n ?? 0;
}
