// A process that proves submissions of a filled database, picked at random, and prints what a proof and a bundle take.

import { openLogCache } from '../../src/server/logs/log-cache.js';
import { createBatchProofs } from '../../src/server/rpc/attestations/batch-proofs.js';
import { createBundleRenderer } from '../../src/server/rpc/attestations/bundles.js';
import { createProofTiles } from '../../src/server/rpc/attestations/proof-tiles.js';
import { connectPool } from '../../src/server/store/database/connect.js';
import {
  createSubmissionLoader,
  type SubmissionRow,
} from '../../src/server/store/submissions/submissions.js';
import { pickIds } from './fill.js';
import { postgresCpuMs } from './postgres-cpu.js';

/** Microseconds of processor time each: of this process, and of Postgres. */
export type ProofCost = { cpuMicros: number; postgresMicros: number };

/** `dir` holds the secrets of the service; `rows` says how many submissions its log has. */
export type ProofsTask = { databaseUrl: string; dir: string; rows: number };
/** Of the look-up of a submission's row, then with its proof, and with its bundle. */
export type ProofsResult = { row: ProofCost; proof: ProofCost; bundle: ProofCost };

const CONCURRENT = 64;
const PROVEN = 20_000;

const task = JSON.parse(process.argv[2] ?? '') as ProofsTask;
const { databaseUrl } = task;
const pool = connectPool({ url: databaseUrl, name: 'proofs', max: 4, statementTimeoutMs: 60_000 });
const logCache = await openLogCache(pool);
const ids = await pickIds(task, task.rows, PROVEN);
/** One of each batch: what the bundles of a batch share is kept by a process that has run for a while. */
const ofBatches = await pool<{ id: string }[]>`
  SELECT s.id FROM batch b JOIN submission s ON s.log_id = b.log_id AND s.log_index = b.first_index`;
const picked = Array.from({ length: PROVEN }, () => ids[Math.floor(Math.random() * ids.length)]!);
const cost = async (work: (row: SubmissionRow) => Promise<unknown>) => {
  const find = createSubmissionLoader(pool);
  const prove = async (id: string) => {
    const row = await find(id);
    if (row === undefined) throw new Error(`there is no submission ${id}`);
    await work(row);
  };
  // Caches fill up and code is compiled with the first half.
  const half = picked.length >> 1;
  await forEach([...ofBatches.map(({ id }) => id), ...picked.slice(0, half)], prove);
  return measure(picked.length - half, () => forEach(picked.slice(half), prove));
};
const tiles = createProofTiles(pool);
const proofs = createBatchProofs(pool, () => performance.now());
const render = createBundleRenderer({ logCache, tiles });
const result: ProofsResult = {
  row: await cost(async () => {}),
  proof: await cost(({ logId, logIndex, batchTreeSize, ownTiles }) =>
    tiles.prove(logId, logIndex, [batchTreeSize ?? 0], ownTiles),
  ),
  bundle: await cost(async (row) =>
    render(row, await proofs.get(await logCache.getLog(row.logId), row.batchTreeSize ?? 0)),
  ),
};
console.log(JSON.stringify(result));
await pool.end();

async function measure(count: number, work: () => Promise<void>): Promise<ProofCost> {
  const postgresBefore = await postgresCpuMs(pool);
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  const postgresMs = (await postgresCpuMs(pool)) - postgresBefore;
  return { cpuMicros: (user + system) / count, postgresMicros: (postgresMs * 1000) / count };
}

async function forEach(ids: readonly string[], work: (id: string) => Promise<unknown>) {
  const left = ids.values();
  const run = async () => {
    for (const id of left) await work(id);
  };
  await Promise.all(Array.from({ length: CONCURRENT }, run));
}
