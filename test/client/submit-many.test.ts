/** Many submissions over a service that fails in part: each gets one result, and what is sent again has the same key. */
import type { JsonObject } from '@bufbuild/protobuf';
import { Code } from '@connectrpc/connect';
import t, { type Test } from 'tap';
import {
  AttestationService,
  BatchCreateAttestationsRequestSchema,
  type BatchItem,
  ItemOutcome,
} from '../../gen/attestation/v1/attestations_pb.js';
import type { SubmitManyItem } from '../../src/client/client.js';
import { MAX_BATCH_ITEMS } from '../../src/client/gather-items.js';
import { findRules } from '../../src/server/json/field-rules.js';
import { serveRpc, serviceError } from '../support/servers/rpc-server.js';
import { clientOf } from './clients.js';

/** What the service does with one item of one call. */
type Verdict = 'created' | 'replayed' | { code: string; retryAfter?: number; details?: JsonObject };

/** A service whose items come to what `judge` says; it throws what is the whole call's. */
async function serve(t: Test, judge: (item: BatchItem, call: number) => Verdict) {
  const calls: BatchItem[][] = [];
  const { baseUrl } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      batchCreateAttestations: ({ items }) => {
        calls.push(items);
        return { results: items.map((item) => resultOf(item, judge(item, calls.length))) };
      },
    });
  });
  return { calls, baseUrl, ...clientOf(baseUrl) };
}

function resultOf({ artifact }: BatchItem, verdict: Verdict) {
  if (typeof verdict === 'object') {
    const { code, retryAfter, details } = verdict;
    const error = { code, details, message: `because of ${code}`, requestId: 'req_1' };
    return { outcome: ItemOutcome.FAILED, error, ...(retryAfter !== undefined && { retryAfter }) };
  }
  const outcome = verdict === 'created' ? ItemOutcome.CREATED : ItemOutcome.REPLAYED;
  return { outcome, submission: { id: `sub_${artifact?.sha256}` } };
}

const items = (
  count: number,
  more: { metadata?: JsonObject; idempotencyKey?: string } = {},
): SubmitManyItem[] =>
  Array.from({ length: count }, (_, i) => ({
    artifact: { sha256: String(i) },
    metadata: { schema: 'purl' },
    ...more,
  }));

type Client = ReturnType<typeof clientOf>['client'];

async function submit(
  { attestations }: Client,
  given: Iterable<SubmitManyItem> | AsyncIterable<SubmitManyItem>,
) {
  const results: string[] = [];
  let count = 0;
  const onResults = (more: number) => {
    count += more;
  };
  for await (const { index, submission, isReplayed, error } of attestations.submitMany(given, {
    onResults,
  })) {
    results.push(`${index} ${error?.code ?? submission?.id}${isReplayed ? ' again' : ''}`);
  }
  t.equal(count, results.length, 'every result was announced');
  return results;
}

t.test('items are gathered into calls within the bounds of the proto, in order', async (t) => {
  const rules = findRules(BatchCreateAttestationsRequestSchema.field.items);
  t.equal(rules?.type.case === 'repeated' && Number(rules.type.value.maxItems), MAX_BATCH_ITEMS);
  const { client, calls } = await serve(t, () => 'created');
  const results = await submit(client, items(2_100));
  t.same(
    results,
    items(2_100).map((_, i) => `${i} sub_${i}`),
  );
  t.same(
    calls.map(({ length }) => length),
    [1_000, 1_000, 100],
  );
  calls.length = 0;
  await submit(client, items(100, { metadata: { schema: 'purl', text: 'x'.repeat(60_000) } }));
  t.same(
    calls.map(({ length }) => length),
    [52, 48],
    'three MiB at most',
  );
  t.same(await submit(client, []), []);
});

t.test('transient failures of items are retried under the same keys, permanent ones are not', async (t) => {
  const { client, calls, pauses } = await serve(t, ({ artifact }, call) => {
    const place = Number(artifact?.sha256);
    if (place === 1) return { code: 'submission.invalid_metadata' };
    if (place % 2 === 0 && call < 3) return { code: 'service.unavailable', retryAfter: call };
    return call === 1 ? 'created' : 'replayed';
  });
  const results = await submit(client, items(5, {}));
  t.same(results, [
    '0 sub_0 again',
    '1 submission.invalid_metadata',
    '2 sub_2 again',
    '3 sub_3',
    '4 sub_4 again',
  ]);
  t.same(
    calls.map((call) => call.map(({ artifact }) => artifact?.sha256).join()),
    ['0,1,2,3,4', '0,2,4', '0,2,4'],
  );
  const keysOf = (call: BatchItem[] | undefined) =>
    call?.filter(({ artifact }) => Number(artifact?.sha256) % 2 === 0).map((item) => item.idempotencyKey);
  t.same(keysOf(calls[1]), keysOf(calls[0]));
  t.equal(new Set(calls[0]?.map(({ idempotencyKey }) => idempotencyKey)).size, 5);
  t.ok((pauses[0] ?? 0) >= 1_000 && (pauses[1] ?? 0) >= 2_000, 'as long as Retry-After says');
});

t.test('beyond a rate limit only as many items are sent as get through', async (t) => {
  const PER_WINDOW = 60;
  const counts = new Map<number, number>();
  const limited = await serve(t, () => {
    const window = limited.pauses.filter((ms) => ms >= 1_000).length;
    const count = (counts.get(window) ?? 0) + 1;
    counts.set(window, count);
    return count <= PER_WINDOW ? 'created' : { code: 'rate_limit.exceeded', retryAfter: 1 };
  });
  t.same(
    await submit(limited.client, items(300)),
    items(300).map((_, i) => `${i} sub_${i}`),
  );
  t.equal(limited.calls[0]?.length, 300);
  t.ok(limited.calls.slice(1).every(({ length }) => length <= PER_WINDOW));
  t.ok(limited.calls.length <= 10, `${limited.calls.length} calls`);
});

t.test('the items that a client gave up to send have the error of those that it sent', async (t) => {
  const limited = await serve(t, ({ artifact }, call) =>
    call === 1 && Number(artifact?.sha256) < 2
      ? 'created'
      : { code: 'rate_limit.exceeded', retryAfter: call === 1 ? 1 : 3_600 },
  );
  t.same(await submit(limited.client, items(5)), [
    '0 sub_0',
    '1 sub_1',
    ...[2, 3, 4].map((i) => `${i} rate_limit.exceeded`),
  ]);
  t.same(
    limited.calls.map(({ length }) => length),
    [5, 2],
  );
});

t.test('a failed call is retried, then its error is the result of its items', async (t) => {
  const flaky = await serve(t, (_, call) => {
    if (call < 3) throw serviceError('service.unavailable');
    return 'replayed';
  });
  t.same(await submit(flaky.client, items(2)), ['0 sub_0 again', '1 sub_1 again']);
  t.equal(new Set(flaky.calls.flat().map(({ idempotencyKey }) => idempotencyKey)).size, 2);
  const down = await serve(t, () => {
    throw serviceError('service.unavailable');
  });
  t.same(await submit(down.client, items(2)), ['0 service.unavailable', '1 service.unavailable']);
  t.equal(down.calls.length, 5, 'after four retries');
  const refused = await serve(t, () => {
    throw serviceError('auth.invalid_key', Code.Unauthenticated);
  });
  t.same(await submit(refused.client, items(1)), ['0 auth.invalid_key']);
  t.equal(refused.calls.length, 1);
});

t.test('a long rate limit or a response without results does not loop endlessly', async (t) => {
  const long = await serve(t, () => ({ code: 'rate_limit.exceeded', retryAfter: 3_600 }));
  t.same(await submit(long.client, items(1)), ['0 rate_limit.exceeded']);
  t.equal(long.calls.length, 1);
  const { baseUrl } = await serveRpc(t, ({ service }) => {
    service(AttestationService, { batchCreateAttestations: () => ({ results: [] }) });
  });
  t.same(await submit(clientOf(baseUrl).client, items(1)), ['0 connection.unexpected_answer']);
});

t.test('keys of the caller are kept, and its source may be slow, fail or be left early', async (t) => {
  const { client, calls } = await serve(t, () => 'created');
  let isLeft = false;
  async function* source() {
    try {
      yield* items(3, { idempotencyKey: 'mine' });
      await new Promise((resolve) => setImmediate(resolve));
      yield* items(3);
      throw new Error('the source failed');
    } finally {
      isLeft = true;
    }
  }
  await t.rejects(submit(client, source()), { message: 'the source failed' });
  t.ok(calls.flat().length >= 3);
  t.equal(calls[0]?.[0]?.idempotencyKey, 'mine');
  isLeft = false;
  for await (const { index } of client.attestations.submitMany(source())) if (index === 0) break;
  t.ok(isLeft);
  const stopping = new AbortController();
  stopping.abort(new Error('enough'));
  const aborted = async () => {
    for await (const _ of client.attestations.submitMany(items(1), { signal: stopping.signal })) t.fail();
  };
  await t.rejects(aborted(), { message: 'enough' });
});

t.test('after a rate limit the client waits for the window that the answer names', async (t) => {
  const start = Date.parse('2026-01-01T00:00:00.700Z');
  let now = start;
  const used = new Map<number, number>();
  const windows: number[] = [];
  const { baseUrl } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      batchCreateAttestations: ({ items }) => ({
        results: items.map((item) => {
          const second = Math.floor(now / 1000);
          const count = (used.get(second) ?? 0) + 1;
          used.set(second, count);
          if (count <= 60) windows.push(second);
          if (count <= 60) return resultOf(item, 'created');
          const details = { reset: new Date((second + 1) * 1000).toISOString() };
          const error = { code: 'rate_limit.exceeded', message: 'spent', details, requestId: 'req_1' };
          return { outcome: ItemOutcome.FAILED, error, retryAfter: 1 };
        }),
      }),
    });
  });
  const { client } = clientOf(baseUrl, {
    now: () => now,
    delay: async (ms) => {
      now += ms;
    },
  });
  await submit(client, items(600));
  const seconds = [...new Set(windows)];
  t.equal(seconds.length, 10, 'each window is used whole');
  t.equal((seconds.at(-1) ?? 0) - (seconds[0] ?? 0), 9, 'and none is left out');
});

t.test('a window that is over by this clock is tried at once, then as Retry-After says', async (t) => {
  const reset = new Date('2020-01-01').toISOString();
  const limited = await serve(t, (_, call) =>
    call <= 2 ? { code: 'rate_limit.exceeded', retryAfter: 3, details: { reset } } : 'created',
  );
  await submit(limited.client, items(1));
  const [first = 0, second = 0] = limited.pauses;
  t.ok(first < 1_000 && second >= 3_000, `${first} and ${second} ms`);
});

t.test('once it is to stop, no call is made, and what has a result is yielded', async (t) => {
  const stop = new AbortController();
  const { client, calls } = await serve(t, ({ artifact }) => {
    stop.abort();
    const isOpen = artifact?.sha256 === '1' || artifact?.sha256 === '2';
    return isOpen ? { code: 'service.unavailable', retryAfter: 1 } : 'created';
  });
  const indexes: number[] = [];
  for await (const { index } of client.attestations.submitMany(items(1_004), { stop: stop.signal })) {
    indexes.push(index);
  }
  t.equal(indexes.length, 998);
  t.same(indexes.slice(0, 3), [0, 3, 4]);
  t.equal(calls.length, 1);
});

t.test(
  'a stop, then the signal, before a wait for the rate limit: it ends as by the stop alone',
  async (t) => {
    const stop = new AbortController();
    const signal = new AbortController();
    const { baseUrl } = await serve(t, ({ artifact }) =>
      artifact?.sha256 === '0' ? 'created' : { code: 'rate_limit.exceeded', retryAfter: 1 },
    );
    const { client } = clientOf(baseUrl, { delay: undefined });
    const indexes: number[] = [];
    const options = { stop: stop.signal, signal: signal.signal };
    for await (const { index } of client.attestations.submitMany(items(2), options)) {
      indexes.push(index);
      stop.abort();
      signal.abort(new Error('late'));
    }
    t.same(indexes, [0]);
  },
);

t.test(
  'results come after the call that has them, not after those of a rate limit that follow',
  async (t) => {
    const { client, calls } = await serve(t, ({ artifact }, call) =>
      call === 1 && Number(artifact?.sha256) >= 60
        ? { code: 'rate_limit.exceeded', retryAfter: 1 }
        : 'created',
    );
    const callsBefore: number[] = [];
    for await (const _ of client.attestations.submitMany(items(100))) callsBefore.push(calls.length);
    t.same([callsBefore[0], callsBefore[59], callsBefore[60], callsBefore.length], [1, 1, 2, 100]);
  },
);

t.test(
  'after a stop the signal breaks off the call under way, and what has a result is yielded',
  async (t) => {
    const stop = new AbortController();
    const signal = new AbortController();
    let release = () => {};
    let calls = 0;
    const { baseUrl } = await serveRpc(t, ({ service }) => {
      service(AttestationService, {
        batchCreateAttestations: async ({ items }) => {
          calls++;
          const limited = { code: 'rate_limit.exceeded', retryAfter: 1 };
          if (calls === 1) {
            return { results: items.map((item, i) => resultOf(item, i === 0 ? 'created' : limited)) };
          }
          stop.abort();
          signal.abort(new Error('late'));
          await new Promise<void>((resolve) => {
            release = resolve;
          });
          return { results: [] };
        },
      });
    });
    const { client } = clientOf(baseUrl);
    const indexes: number[] = [];
    const options = { stop: stop.signal, signal: signal.signal };
    for await (const { index } of client.attestations.submitMany(items(3), options)) indexes.push(index);
    release();
    t.same(indexes, [0]);
    t.equal(calls, 2);
  },
);
