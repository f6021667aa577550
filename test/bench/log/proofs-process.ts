// A process that proves submissions of a filled database, picked at random, and prints what a proof and a bundle take.

import { createBatchProofs } from '../../../src/server/attestations/bundles/batch-proofs.js';
import { createBundleRenderer } from '../../../src/server/attestations/bundles/bundles.js';
import { createProofTiles } from '../../../src/server/attestations/bundles/proof-tiles.js';
import { createStatementReader } from '../../../src/server/attestations/statements/statement-store.js';
import {
  createSubmissionLoader,
  type SubmissionRow,
} from '../../../src/server/attestations/submissions/submissions.js';
import { connectPool } from '../../../src/server/database/connect.js';
import { openLogCache } from '../../../src/server/log/log-cache.js';
import { postgresCpuMs } from '../cpu/postgres-cpu.js';
import { pickIds } from '../fill.js';
import { median } from '../rounds.js';

/**
 * Microseconds each: processor time of this process and of Postgres with many at once, and the median time by the clock of
 * one that is asked for after the other.
 */
export type ProofCost = { cpuMicros: number; postgresMicros: number; elapsedMicros: number };

/** `dir` holds the secrets of the service; `rows` says how many submissions its log has. */
export type ProofsTask = { databaseUrl: string; dir: string; rows: number };
/** Of the look-up of a submission's row, then with its proof, and with its bundle. */
export type ProofsResult = { row: ProofCost; proof: ProofCost; bundle: ProofCost };

const CONCURRENT = 64;
const PROVEN = 20_000;
const TIMED = 10_000;

const task = JSON.parse(process.argv[2] ?? '') as ProofsTask;
const { databaseUrl } = task;
const pool = connectPool({ url: databaseUrl, name: 'proofs', max: 4, statementTimeoutMs: 60_000 });
const logCache = await openLogCache(pool);
const ids = await pickIds(task, task.rows, PROVEN);
/** One of each batch: what the bundles of a batch share is kept by a process that has run for a while. */
const ofBatches = await pool<{ id: string }[]>`
  SELECT s.id FROM batch b JOIN submission s ON s.log_id = b.log_id AND s.log_index = b.first_index`;
const sample = (ids: readonly string[], count: number) =>
  Array.from({ length: count }, () => ids[Math.floor(Math.random() * ids.length)]!);
const picked = sample(ids, PROVEN);
const find = createSubmissionLoader(pool);
const tiles = createProofTiles(pool);
const proofs = createBatchProofs(pool, () => performance.now());
const render = createBundleRenderer({ logCache, tiles, readStatement: createStatementReader(pool) });
const works: Record<keyof ProofsResult, Work> = {
  row: async () => {},
  proof: ({ logId, logIndex, batchTreeSize, ownTiles }) =>
    tiles.prove(logId, logIndex, [batchTreeSize ?? 0], ownTiles),
  bundle: async (row) =>
    render(row, await proofs.get(await logCache.getLog(row.logId), row.batchTreeSize ?? 0), {}),
};
const cpu = {
  row: await measureCpu(works.row),
  proof: await measureCpu(works.proof),
  bundle: await measureCpu(works.bundle),
};
const result: ProofsResult = {
  row: { ...cpu.row, elapsedMicros: await measureElapsed(works.row) },
  proof: { ...cpu.proof, elapsedMicros: await measureElapsed(works.proof) },
  bundle: { ...cpu.bundle, elapsedMicros: await measureElapsed(works.bundle) },
};
console.log(JSON.stringify(result));
await pool.end();

type Work = (row: SubmissionRow) => Promise<unknown>;

async function prove(id: string, work: Work): Promise<void> {
  const row = await find(id);
  if (row === undefined) throw new Error(`there is no submission ${id}`);
  await work(row);
}

/** Many at once: the first half of those picked fills caches and gets code compiled, the second half is measured. */
async function measureCpu(work: Work): Promise<Omit<ProofCost, 'elapsedMicros'>> {
  const half = picked.length >> 1;
  await forEach([...ofBatches.map(({ id }) => id), ...picked.slice(0, half)], work);
  const postgresBefore = await postgresCpuMs(pool);
  const before = process.cpuUsage();
  await forEach(picked.slice(half), work);
  const { user, system } = process.cpuUsage(before);
  const postgresMs = (await postgresCpuMs(pool)) - postgresBefore;
  const count = picked.length - half;
  return { cpuMicros: (user + system) / count, postgresMicros: (postgresMs * 1000) / count };
}

/**
 * One after the other, by a process that is warm: others than before, whose rows were read a moment ago.
 *
 * @returns the median of the microseconds that each took
 */
async function measureElapsed(work: Work): Promise<number> {
  const times: number[] = [];
  for (const id of sample(await pickIds(task, task.rows, TIMED), TIMED)) {
    const startedMs = performance.now();
    await prove(id, work);
    times.push((performance.now() - startedMs) * 1000);
  }
  return median(times) ?? Number.NaN;
}

async function forEach(ids: readonly string[], work: Work): Promise<void> {
  const left = ids.values();
  const run = async () => {
    for (const id of left) await prove(id, work);
  };
  await Promise.all(Array.from({ length: CONCURRENT }, run));
}
