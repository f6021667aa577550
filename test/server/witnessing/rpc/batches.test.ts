import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { BatchService, BatchStatus } from '../../../../gen/attestation/v1/batches_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { toHex } from '../../../../src/proof/bytes/encoding.js';
import { parseCheckpoint } from '../../../../src/proof/log/checkpoint.js';
import { type App, startApp } from '../../../support/app.js';
import { newKey, type TestKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { until } from '../../../support/until.js';
import { letWitnessesBeAsked } from '../../../support/wait-for-idle.js';
import { NOTHING } from '../../rpc/samples.js';
import { submit } from '../../rpc/submitting.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const { getBatch, listBatches } = BatchService.method;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

type Batch = JsonObject & { id: string; status: string; witnesses: JsonObject[] };

async function batchesOf({ key }: TestKey, query = '', at: App = app): Promise<Batch[]> {
  const { status, json } = await at.rest(`/v1/batches${query}`, { apiKey: key });
  if (status !== 200) throw new Error(JSON.stringify(json));
  return json.data as Batch[];
}

/** Submits so many, each in a batch of its own. */
async function seal(owner: TestKey, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await submit(app, owner);
    await app.drain();
  }
}

t.test('a batch has its range, its checkpoint and its witnesses', async (t) => {
  const owner = await newKey(app);
  await seal(owner, 2);
  const release = await app.holdSealing();
  for (let i = 0; i < 3; i++) await submit(app, owner);
  await release();
  await app.drain();
  const [batch] = await batchesOf(owner);
  const { id, root_hash, first_index, tree_size, sealed_at, witnessed_at, checkpoint, witnesses, ...rest } =
    batch!;
  t.match(id, /^btc_[0-9A-HJKMNP-TV-Z]{26}$/);
  t.same(rest, { environment: 'live', status: 'witnessed', leaf_count: 3, quorums: [] });
  t.equal(Number(tree_size) - Number(first_index), 3);
  t.match(sealed_at, TIME);
  t.match(witnessed_at, TIME);
  t.ok(String(witnessed_at) >= String(sealed_at));
  const { origin, size, rootHash } = parseCheckpoint(String(checkpoint));
  t.same([origin, size, toHex(rootHash)], ['live.log.example.com', tree_size, root_hash]);
  const [log, tsa, ...more] = witnesses;
  t.same(more, []);
  t.same(
    { ...log, landed_at: TIME.test(String(log!.landed_at)) },
    {
      name: 'log',
      kind: 'transparency_log',
      status: 'landed',
      required: true,
      landed_at: true,
      covers_tree_size: tree_size,
      detail: { log_index: first_index },
    },
  );
  const { detail, landed_at, ...witness } = tsa!;
  t.same(witness, {
    name: 'self-tsa',
    kind: 'rfc3161',
    status: 'landed',
    required: true,
    covers_tree_size: tree_size,
  });
  t.match(landed_at, TIME);
  t.match(detail, { policy_oid: '2.999.3161.1', serial: /^[0-9a-f]+$/, gen_time: TIME });
  t.same((await app.rest(`/v1/batches/${id}`, { apiKey: owner.key })).json, batch, 'alone it is the same');
  for (const { name, call } of surfaces) {
    const { response } = await call(getBatch, { id }, owner.key);
    t.match(response, { id, status: 'BATCH_STATUS_WITNESSED', leafCount: '3', rootHash: root_hash }, name);
  }
});

t.test('a batch that waits for its witness has the pending status', async (t) => {
  const owner = await newKey(app);
  app.witnesses[0]!.hold();
  await submit(app, owner);
  const [batch] = await until('it is published', async () => {
    const found = await batchesOf(owner);
    return found.length > 0 && found;
  });
  t.match(batch, {
    status: 'sealed',
    witnesses: [{ status: 'landed' }, { name: 'self-tsa', status: 'pending', required: true }],
  });
  t.notOk('witnessed_at' in batch!);
  for (const member of ['landed_at', 'covers_tree_size', 'detail']) t.notOk(member in batch!.witnesses[1]!);
  t.same(
    (await batchesOf(owner, '?status=sealed')).map(({ id }) => id),
    [batch!.id],
  );
  app.witnesses[0]!.release();
  await app.drain();
  t.match(await batchesOf(owner), [{ id: batch!.id, status: 'witnessed' }]);
});

t.test('evidence over a later checkpoint covers earlier batches', async (t) => {
  const owner = await newKey(app, { environment: Environment.TEST });
  app.witnesses[0]!.isBroken = true;
  await submit(app, owner);
  await until('it has failed once', async () => {
    const [found] = await batchesOf(owner);
    return found?.witnesses[1]?.last_error !== undefined;
  });
  await seal(owner, 1);
  app.witnesses[0]!.isBroken = false;
  await letWitnessesBeAsked(app.pool);
  await until('both are witnessed', async () => {
    const found = await batchesOf(owner, '?status=witnessed');
    return found.length === 2;
  });
  const [newer, older] = await batchesOf(owner);
  t.ok(Number(newer!.tree_size) > Number(older!.tree_size));
  t.equal(older!.witnesses[1]!.covers_tree_size, newer!.tree_size);
  t.notOk('last_error' in older!.witnesses[1]!, 'what went wrong before is over');
});

t.test('a batch past its deadline is partial or failed, with the errors of its witnesses', async (t) => {
  const other = await startApp(t, { witnesses: ['one', 'two'], witnessDeadlineMs: 1 });
  const owner = await newKey(other);
  const [one, two] = other.witnesses;
  one!.isBroken = true;
  two!.isBroken = true;
  await submit(other, owner);
  const [failed] = await until('it has failed', async () => {
    const found = await batchesOf(owner, '?status=failed', other);
    return found.length === 1 && found;
  });
  const why = { status: 'failed', last_error: 'the request to the witness failed', required: true };
  t.match(failed!.witnesses, [{ status: 'landed' }, { name: 'one', ...why }, { name: 'two', ...why }]);

  const fresh = await startApp(t, { witnesses: ['one', 'two'], witnessDeadlineMs: 1 });
  const holder = await newKey(fresh);
  fresh.witnesses[1]!.isBroken = true;
  const { id } = await submit(fresh, holder);
  const [partial] = await until('it is partial', async () => {
    const found = await batchesOf(holder, '?status=partial', fresh);
    return found.length === 1 && found;
  });
  t.match(partial!.witnesses, [
    { status: 'landed' },
    { name: 'one', status: 'landed' },
    { name: 'two', ...why },
  ]);
  const { json } = await fresh.rest(`/v1/attestations/${id}`, { apiKey: holder.key });
  t.match(json, {
    status: 'partial',
    batch_id: partial!.id,
    bundle: { witnesses: [{ name: 'log' }, { name: 'one' }] },
  });
  t.notOk('witnessed_at' in json);
  for (const each of [other, fresh]) assertNoLeaks(t, each.recorder);
});

t.test('batches are listed newest first, in pages that cover all of them once', async (t) => {
  const owner = await newKey(app);
  await seal(owner, 5);
  const all = (await batchesOf(owner)).map(({ id }) => id);
  t.equal(all.length, 5);
  const sizes = (await batchesOf(owner)).map(({ tree_size }) => Number(tree_size));
  t.same(
    sizes,
    [...sizes].sort((a, b) => b - a),
  );
  for (const { name, call } of surfaces) {
    const ids: string[] = [];
    let cursor = '';
    do {
      const { response } = await call(
        listBatches,
        { limit: 2, cursor, status: BatchStatus.WITNESSED },
        owner.key,
      );
      const { data, nextCursor = '' } = response as unknown as { data: Batch[]; nextCursor?: string };
      ids.push(...data.map(({ id }) => id));
      cursor = nextCursor;
      await seal(owner, 1);
    } while (cursor !== '');
    t.same(
      ids.filter((id) => all.includes(id)),
      all,
      name,
    );
    t.equal(new Set(ids).size, ids.length);
  }
  t.same(await batchesOf(owner, '?status=failed'), []);
});

t.test('a cursor of another list, a wrong filter and an unknown batch are rejected', async (t) => {
  const owner = await newKey(app);
  await seal(owner, 2);
  const { json } = await app.rest('/v1/batches?limit=1', { apiKey: owner.key });
  const cursor = String(json.next_cursor);
  const stranger = await newKey(app);
  for (const { name, call } of surfaces) {
    for (const [query, apiKey] of [
      [{ cursor, status: BatchStatus.WITNESSED }, owner.key],
      [{ cursor }, stranger.key],
      [{ cursor: `${cursor}A` }, owner.key],
    ] as const) {
      t.equal((await call(listBatches, query, apiKey)).code, 'cursor.invalid', name);
    }
    for (const limit of [0, 201]) {
      t.equal((await call(listBatches, { limit }, owner.key)).code, 'request.invalid', name);
    }
    const missing = await call(getBatch, { id: NOTHING.batchId }, owner.key);
    t.match(missing, { code: 'batch.not_found', status: name === 'REST' ? 404 : 0 }, name);
  }
  for (const query of ['status=queued', 'status=WITNESSED', 'limit=abc', 'schema=purl']) {
    t.equal((await app.rest(`/v1/batches?${query}`, { apiKey: owner.key })).status, 400, query);
  }
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
