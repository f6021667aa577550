// A process that seals whatever a database's live log has, or hashes a tree of as many leaves, and prints what it took.
import { hash, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { takeCoverage } from 'node:v8';
import { ulid } from 'ulid';
import { createLogger } from '../../../src/server/core/logger.js';
import { connectPool } from '../../../src/server/database/connect.js';
import { openSecrets } from '../../../src/server/embedded/secrets.js';
import { checkpointSigners } from '../../../src/server/log/checkpoint-signers.js';
import { openLogKeys } from '../../../src/server/log/log-keys.js';
import { seal } from '../../../src/server/log/seal.js';
import { readLogSize } from '../../../src/server/log/store/leaves.js';
import { openRegister } from '../../../src/server/witnessing/register/open-register.js';
import { setUpWitnesses } from '../../../src/server/witnessing/set-up-witnesses.js';
import { openLiveLog } from '../prefill.js';
import { peakMib } from '../process.js';

/** What the process did and used. */
export type SealResult = { leaves: number; cpuSeconds: number; seconds: number; peakMib: number | undefined };

/** `batchMaxLeaves` of each batch; `hash` has a tree of random leaves hashed in memory instead. */
export type SealTask =
  | { databaseUrl: string; dir: string; registerDir: string; batchMaxLeaves: number }
  | { hash: number };

const task = JSON.parse(process.argv[2] ?? '') as SealTask;
const result = 'hash' in task ? hashTree(task.hash) : await sealAll(task);
console.log(JSON.stringify(result));

async function sealAll(task: Exclude<SealTask, { hash: number }>): Promise<SealResult> {
  const pool = connectPool({ url: task.databaseUrl, name: 'seal', max: 4, statementTimeoutMs: 600_000 });
  const { logId } = await openLiveLog({ pool, dir: task.dir });
  await setUpWitnesses(pool, [], { quorums: [], deadlineMs: 3_600_000 });
  const secrets = await openSecrets(task.dir);
  const [sealed] = await pool<{ size: number }[]>`
    SELECT coalesce(max(tree_size), 0) AS size FROM batch WHERE log_id = ${logId}`;
  const pipeline = {
    pool,
    log: createLogger({ level: 'warn', fd: 2 }),
    register: await openRegister(task.registerDir),
    witnesses: [],
    signerOf: checkpointSigners(await openLogKeys(secrets, { add: () => {} })),
    settings: { batchIntervalMs: 0, batchMaxLeaves: task.batchMaxLeaves, witnessTimeoutMs: 1_000 },
    newBatchId: () => `btc_${ulid()}`,
    localPool: pool,
    assertCommits: () => {},
    aborting: new AbortController().signal,
    random: Math.random,
    observeAlarm: () => {},
    observeSettled: () => {},
    send: () => {},
  };
  const leaves = (await readLogSize(pool, logId)) - (sealed?.size ?? 0);
  // Of a process that is up, for `--only files`.
  takeCoverage();
  const measured = await measure(leaves, async () => {
    for (;;) {
      const outcome = await seal(pipeline, logId);
      if (outcome.type === 'giveUp') throw new Error(outcome.reason);
      if (outcome.type === 'done') return;
      if (outcome.delayMs > 1) await delay(outcome.delayMs);
    }
  });
  await pool.end();
  return measured;
}

/** The tree's hashes alone, level by level (RFC 6962, section 2.1): what no sealing can do without. */
function hashTree(leaves: number): SealResult {
  let level: Uint8Array[] = Array.from({ length: leaves }, () => randomBytes(32));
  const node = Buffer.alloc(65, 1);
  const before = process.cpuUsage();
  const startedMs = performance.now();
  while (level.length > 1) {
    const next: Uint8Array[] = [];
    for (let i = 0; i + 1 < level.length; i += 2) {
      node.set(level[i] as Uint8Array, 1);
      node.set(level[i + 1] as Uint8Array, 33);
      next.push(hash('sha256', node, 'buffer'));
    }
    if (level.length % 2 === 1) next.push(level[level.length - 1] as Uint8Array);
    level = next;
  }
  return resultSince(leaves, before, startedMs);
}

async function measure(leaves: number, work: () => Promise<void>): Promise<SealResult> {
  const before = process.cpuUsage();
  const startedMs = performance.now();
  await work();
  return resultSince(leaves, before, startedMs);
}

function resultSince(leaves: number, before: NodeJS.CpuUsage, startedMs: number): SealResult {
  const { user, system } = process.cpuUsage(before);
  const seconds = (performance.now() - startedMs) / 1000;
  return { leaves, cpuSeconds: (user + system) / 1e6, seconds, peakMib: peakMib(process.pid) };
}
