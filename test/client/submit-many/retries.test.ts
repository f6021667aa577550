/** Many submissions over a service that fails in part: each gets one result, and what is sent again has the same key. */
import { Code } from '@connectrpc/connect';
import t from 'tap';
import { AttestationService, type BatchItem } from '../../../gen/attestation/v1/attestations_pb.js';
import { serveRpc, serviceError } from '../../support/servers/rpc-server.js';
import { clientOf } from '../clients.js';
import { items, serve, submit } from './judged-service.js';

t.test('transient failures of items are retried under the same keys, permanent ones are not', async (t) => {
  const { client, calls, pauses } = await serve(t, ({ artifact }, call) => {
    const place = Number(artifact?.sha256);
    if (place === 1) return { code: 'submission.invalid_metadata' };
    if (place % 2 === 0 && call < 3) return { code: 'service.unavailable', retryAfter: call };
    return call === 1 ? 'created' : 'replayed';
  });
  const results = await submit(t, client, items(5, {}));
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

t.test('a failed call is retried, then its error is the result of its items', async (t) => {
  const flaky = await serve(t, (_, call) => {
    if (call < 3) throw serviceError('service.unavailable');
    return 'replayed';
  });
  t.same(await submit(t, flaky.client, items(2)), ['0 sub_0 again', '1 sub_1 again']);
  t.equal(new Set(flaky.calls.flat().map(({ idempotencyKey }) => idempotencyKey)).size, 2);
  const down = await serve(t, () => {
    throw serviceError('service.unavailable');
  });
  t.same(await submit(t, down.client, items(2)), ['0 service.unavailable', '1 service.unavailable']);
  t.equal(down.calls.length, 5, 'after four retries');
  const refused = await serve(t, () => {
    throw serviceError('auth.invalid_key', Code.Unauthenticated);
  });
  t.same(await submit(t, refused.client, items(1)), ['0 auth.invalid_key']);
  t.equal(refused.calls.length, 1);
});

t.test('a long rate limit or a response without results does not loop endlessly', async (t) => {
  const long = await serve(t, () => ({ code: 'rate_limit.exceeded', retryAfter: 3_600 }));
  t.same(await submit(t, long.client, items(1)), ['0 rate_limit.exceeded']);
  t.equal(long.calls.length, 1);
  const { baseUrl } = await serveRpc(t, ({ service }) => {
    service(AttestationService, { batchCreateAttestations: () => ({ results: [] }) });
  });
  t.same(await submit(t, clientOf(baseUrl).client, items(1)), ['0 connection.unexpected_answer']);
});
