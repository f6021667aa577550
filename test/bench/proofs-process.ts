// A process that proves submissions of a filled database, picked at random, and prints what a proof and a bundle take.

import { openLogCache } from '../../src/server/logs/log-cache.js';
import { createBatchProofs } from '../../src/server/rpc/attestations/batch-proofs.js';
import { renderBundle } from '../../src/server/rpc/attestations/bundles.js';
import { createProofTiles } from '../../src/server/rpc/attestations/proof-tiles.js';
import { connectPool } from '../../src/server/store/database/connect.js';
import { findSubmissions, type SubmissionRow } from '../../src/server/store/submissions/submissions.js';
import { pickIds } from './fill.js';
import { postgresCpuMs } from './postgres-cpu.js';

/** Microseconds of processor time each: of this process, and of Postgres. */
export type ProofCost = { cpuMicros: number; postgresMicros: number };

/** `dir` holds the secrets of the service; `rows` says how many submissions its log has. */
export type ProofsTask = { databaseUrl: string; dir: string; rows: number };
export type ProofsResult = { proof: ProofCost; bundle: ProofCost };

const CONCURRENT = 64;
const PROVEN = 20_000;

const task = JSON.parse(process.argv[2] ?? '') as ProofsTask;
const { databaseUrl } = task;
const pool = connectPool({ url: databaseUrl, name: 'proofs', max: 4, statementTimeoutMs: 60_000 });
const logCache = await openLogCache(pool);
const found = await findSubmissions(pool, await pickIds(task, task.rows, PROVEN));
const rows = Array.from({ length: PROVEN }, () => found[Math.floor(Math.random() * found.length)]!);
const clock = () => performance.now();
const cost = async (work: (row: SubmissionRow) => Promise<unknown>) => {
  // Caches fill up and code is compiled with the first half.
  const half = rows.length >> 1;
  await forEach(rows.slice(0, half), work);
  return measure(rows.length - half, () => forEach(rows.slice(half), work));
};
const tiles = createProofTiles(pool);
const proofs = createBatchProofs(pool, clock);
const result: ProofsResult = {
  proof: await cost((row) => tiles.prove(row.logId, row.logIndex, [row.batchTreeSize ?? 0])),
  bundle: await cost(async (row) => {
    const proof = await proofs.get(await logCache.getLog(row.logId), row.batchTreeSize ?? 0);
    return renderBundle({ logCache, tiles }, row, proof);
  }),
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

async function forEach(rows: readonly SubmissionRow[], work: (row: SubmissionRow) => Promise<unknown>) {
  const left = rows.values();
  const run = async () => {
    for (const row of left) await work(row);
  };
  await Promise.all(Array.from({ length: CONCURRENT }, run));
}
