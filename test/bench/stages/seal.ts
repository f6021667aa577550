import { withShutdownHooks } from '../../../src/server/core/shutdown.js';
import type { Options } from '../options.js';
import { appendSubmissions } from '../prefill.js';
import { benchScript, runNode } from '../process.js';
import { type Contender, measureInTurns, type Summary } from '../rounds.js';
import { openPool, type Services } from '../services.js';
import type { SealResult, SealTask } from './seal-process.js';

/** Rates are leaves per second of processor time; `cpuMicros` is per leaf. */
export type SealMeasurement = { leaves: number; summaries: Summary[]; workerMib: number | undefined };

/** The default of BATCH_MAX_LEAVES, and what a second of 2,000 submissions/s makes. */
const LARGE_BATCH = 65_536;
export const SMALL_BATCH = 2_000;

/** Sealing in a process of its own, beside the hashing of the tree alone. */
export async function measureSeal(services: Services, options: Options): Promise<SealMeasurement> {
  return withShutdownHooks(async (hooks) => {
    const { dir, projectId, databaseUrl, env } = services;
    const pool = openPool(databaseUrl, hooks);
    const registerDir = env.CHECKPOINT_REGISTER ?? '';
    let workerMib: number | undefined;
    const run = async (task: SealTask) => {
      const result = await runSeal(task);
      if ('databaseUrl' in task) workerMib = Math.max(workerMib ?? 0, result.peakMib ?? 0) || undefined;
      return {
        perSecond: result.leaves / result.cpuSeconds,
        cpuMicros: (result.cpuSeconds / result.leaves) * 1e6,
      };
    };
    const sealing = (batchMaxLeaves: number) => async () => {
      await appendSubmissions({ pool, dir, projectId }, options.sealLeaves);
      return run({ databaseUrl, dir, registerDir, batchMaxLeaves });
    };
    const contenders: Contender[] = [
      { name: 'hashing the tree alone', run: () => run({ hash: options.sealLeaves }) },
      { name: `batches of ${LARGE_BATCH}`, run: sealing(LARGE_BATCH) },
      { name: `batches of ${SMALL_BATCH}`, run: sealing(SMALL_BATCH) },
    ];
    const summaries = await measureInTurns(contenders, { ...options, warmUpSeconds: 0 });
    return { leaves: options.sealLeaves, summaries, workerMib };
  });
}

/** Runs one task in a process of its own. */
export function runSeal(task: SealTask): Promise<SealResult> {
  return runNode<SealResult>([benchScript('stages/seal-process'), JSON.stringify(task)]);
}
