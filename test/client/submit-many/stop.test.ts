/** Submitting that is to stop: no further call is made, and what has a result is yielded. */
import t from 'tap';
import { AttestationService } from '../../../gen/attestation/v1/attestations_pb.js';
import { serveRpc } from '../../support/servers/rpc-server.js';
import { clientOf } from '../clients.js';
import { items, resultOf, serve } from './judged-service.js';

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
