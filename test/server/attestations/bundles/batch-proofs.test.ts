import t from 'tap';
import { createBatchProofs } from '../../../../src/server/attestations/bundles/batch-proofs.js';
import { findSubmissions } from '../../../../src/server/attestations/submissions/submissions.js';
import { openLogCache } from '../../../../src/server/log/log-cache.js';
import { startApp } from '../../../support/app.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { submitWitnessed } from '../../rpc/submitting.js';

const SECOND_MS = 1_000;
const app = await startApp(t);
const owner = await newKey(app);

/** Gives a log evidence by a witness for a checkpoint of some size, as another witness gave it. */
async function vouch(logId: number, witness: string, treeSize: number): Promise<void> {
  await app.pool.begin(async (tx) => {
    await tx`
      INSERT INTO evidence (log_id, witness, tree_size, kind, evidence, detail)
      SELECT log_id, ${witness}, ${treeSize}, kind, evidence, detail FROM evidence WHERE log_id = ${logId} LIMIT 1`;
    await tx`
      INSERT INTO witness_state (log_id, witness, covers_tree_size) VALUES (${logId}, ${witness}, ${treeSize})
      ON CONFLICT (log_id, witness) DO UPDATE SET covers_tree_size = greatest(witness_state.covers_tree_size, ${treeSize})`;
  });
}

async function proofsOfABatch() {
  const { id } = await submitWitnessed(app, owner);
  const [row] = await findSubmissions(app.pool, [id]);
  if (row === undefined || row.batchTreeSize === null) throw new Error(`${id} is in no batch`);
  const { logId, batchTreeSize: treeSize } = row;
  const log = await (await openLogCache(app.pool)).getLog(logId);
  let nowMs = 0;
  const proofs = createBatchProofs(app.pool, () => nowMs);
  return {
    logId,
    treeSize,
    get: () => proofs.get(log, treeSize),
    wait: (ms: number) => {
      nowMs += ms;
    },
  };
}

t.test('a batch is kept until another witness has vouched for it', async (t) => {
  const { logId, treeSize, get, wait } = await proofsOfABatch();
  const first = await get();
  for (let i = 0; i < 3; i++) {
    wait(6 * SECOND_MS);
    t.equal(await get(), first, 'nothing is new');
  }
  await vouch(logId, 'before', treeSize - 1);
  wait(6 * SECOND_MS);
  t.equal(await get(), first, 'another one has vouched for less of the log');

  await vouch(logId, 'other', treeSize);
  t.equal(await get(), first, 'five seconds have not passed');
  wait(6 * SECOND_MS);
  const [second, same] = await Promise.all([get(), get()]);
  t.not(second, first);
  t.equal(same, second, 'read once');
  t.same(second.vouchedBy.toSorted(), [...first.vouchedBy, 'other'].toSorted());
  wait(6 * SECOND_MS);
  t.equal(await get(), second);
});

t.test('evidence for an earlier checkpoint takes the place of that for a later one', async (t) => {
  const { logId, treeSize, get, wait } = await proofsOfABatch();
  await vouch(logId, 'slow', treeSize + 1);
  const first = await get();
  t.match(first.evidence, `slow ${treeSize + 1}`);
  await vouch(logId, 'slow', treeSize);
  wait(300 * SECOND_MS);
  t.equal(await get(), first);
  wait(301 * SECOND_MS);
  t.match((await get()).evidence, `slow ${treeSize}`);
});
