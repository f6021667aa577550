/** Items become calls: how many in each, from which sources, and when their results come. */
import t from 'tap';
import { BatchCreateAttestationsRequestSchema } from '../../../gen/attestation/v1/attestations_pb.js';
import { MAX_BATCH_ITEMS } from '../../../src/client/gather-items.js';
import { findRules } from '../../../src/server/json/field-rules.js';
import { items, serve, submit } from './judged-service.js';

t.test('items are gathered into calls within the bounds of the proto, in order', async (t) => {
  const rules = findRules(BatchCreateAttestationsRequestSchema.field.items);
  t.equal(rules?.type.case === 'repeated' && Number(rules.type.value.maxItems), MAX_BATCH_ITEMS);
  const { client, calls } = await serve(t, () => 'created');
  const results = await submit(t, client, items(2_100));
  t.same(
    results,
    items(2_100).map((_, i) => `${i} sub_${i}`),
  );
  t.same(
    calls.map(({ length }) => length),
    [1_000, 1_000, 100],
  );
  calls.length = 0;
  await submit(t, client, items(100, { metadata: { schema: 'purl', text: 'x'.repeat(60_000) } }));
  t.same(
    calls.map(({ length }) => length),
    [52, 48],
    'three MiB at most',
  );
  t.same(await submit(t, client, []), []);
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
  await t.rejects(submit(t, client, source()), { message: 'the source failed' });
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
