/** Requests for stamps are bounded: in flight, in rate, and in the time that they wait. */
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { createStampRequests } from '../../../../src/server/attestations/stamps/stamp-witness.js';
import type { NewStamp } from '../../../../src/server/attestations/stamps/stored-stamps.js';

type Asked = { limits?: { inFlight: number; perSecond: number }; answer?: () => Promise<unknown> };

/** Requests to a witness that takes 10 ms, and a clock that the test moves on. */
function makeRequests({ limits = { inFlight: 2, perSecond: 1_000 }, answer = async () => {} }: Asked = {}) {
  const seen = { asked: 0, inFlight: 0, most: 0, failed: 0, offsetMs: 0 };
  const requests = createStampRequests(
    {
      store: async ({ logIndex }: NewStamp) => `stamp of ${logIndex}`,
      outageLog: { failed: () => void seen.failed++, recovered: () => {} },
      clock: () => performance.now() + seen.offsetMs,
      closing: new AbortController().signal,
    },
    {
      name: 'stamps',
      environments: [1],
      limits,
      ask: async () => {
        seen.asked++;
        seen.most = Math.max(seen.most, ++seen.inFlight);
        await delay(10);
        seen.inFlight--;
        await answer();
        return { response: new Uint8Array(1), genTime: new Date() };
      },
    },
  );
  const request = (logIndex: number, waitMs = 60_000) =>
    requests.request(
      { logId: 1, logIndex, signature: new Uint8Array(70) },
      performance.now() + seen.offsetMs + waitMs,
    );
  return { seen, request, requests };
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

t.test('no more are in flight, and no more are started in a second, than the limits say', async (t) => {
  const { seen, request } = makeRequests({ limits: { inFlight: 2, perSecond: 20 } });
  const startMs = performance.now();
  const stamps = await Promise.all(upTo(6).map((i) => request(i)));
  t.same(
    stamps,
    upTo(6).map((i) => `stamp of ${i}`),
  );
  t.equal(seen.most, 2);
  t.ok(performance.now() - startMs >= 200, 'the fifth starts after two turns of 100 ms');
});

t.test('concurrent requests for a leaf are one, and later ones are not', async (t) => {
  const { seen, request } = makeRequests();
  await Promise.all([request(7), request(7), request(7)]);
  t.equal(seen.asked, 1);
  await request(7);
  t.equal(seen.asked, 2);
});

t.test('what has waited too long is not asked, and what is beyond the queue neither', async (t) => {
  const { seen, request } = makeRequests({ limits: { inFlight: 1, perSecond: 10 } });
  const found = await Promise.all([request(1), request(2, 20)]);
  t.same(found, ['stamp of 1', undefined]);
  const many = await Promise.all(upTo(1_200).map((i) => request(i, 0)));
  t.ok(many.every((stamp) => stamp === undefined));
  t.equal(seen.asked, 1);
});

t.test(
  'after a failure it rests, twice as long each time, up to a minute, and anew after a success',
  async (t) => {
    let isBroken = true;
    const answer = async () => (isBroken ? Promise.reject(new Error('it is away')) : undefined);
    const { seen, request, requests } = makeRequests({ answer });
    const rests: number[] = [];
    for (let i = 0; i < 8; i++) {
      await Promise.all([request(i), request(100 + i)]);
      const restMs = requests.restUntilMs() - (performance.now() + seen.offsetMs);
      rests.push(Math.ceil(restMs / 1_000));
      const { asked } = seen;
      t.equal(await request(200 + i), undefined);
      t.equal(seen.asked, asked, 'it rests');
      seen.offsetMs += restMs + 1;
    }
    t.same(rests, [1, 2, 4, 8, 16, 32, 60, 60]);
    t.ok(seen.failed >= 8);
    isBroken = false;
    t.equal(await request(1), 'stamp of 1');
    isBroken = true;
    await request(2);
    t.ok(requests.restUntilMs() - (performance.now() + seen.offsetMs) <= 1_000);
  },
);
