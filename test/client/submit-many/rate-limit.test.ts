/** Items beyond a rate limit: how many are sent again, and when. */
import t from 'tap';
import { AttestationService, ItemOutcome } from '../../../gen/attestation/v1/attestations_pb.js';
import { serveRpc } from '../../support/servers/rpc-server.js';
import { clientOf } from '../clients.js';
import { items, resultOf, serve, submit } from './judged-service.js';

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
    await submit(t, limited.client, items(300)),
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
  t.same(await submit(t, limited.client, items(5)), [
    '0 sub_0',
    '1 sub_1',
    ...[2, 3, 4].map((i) => `${i} rate_limit.exceeded`),
  ]);
  t.same(
    limited.calls.map(({ length }) => length),
    [5, 2],
  );
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
  await submit(t, client, items(600));
  const seconds = [...new Set(windows)];
  t.equal(seconds.length, 10, 'each window is used whole');
  t.equal((seconds.at(-1) ?? 0) - (seconds[0] ?? 0), 9, 'and none is left out');
});

t.test('a window that is over by this clock is tried at once, then as Retry-After says', async (t) => {
  const reset = new Date('2020-01-01').toISOString();
  const limited = await serve(t, (_, call) =>
    call <= 2 ? { code: 'rate_limit.exceeded', retryAfter: 3, details: { reset } } : 'created',
  );
  await submit(t, limited.client, items(1));
  const [first = 0, second = 0] = limited.pauses;
  t.ok(first < 1_000 && second >= 3_000, `${first} and ${second} ms`);
});
