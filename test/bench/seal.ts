import { join } from 'node:path';
import { withStops } from '../../src/app/stops.js';
import { migrate } from '../../src/store/migrate.js';
import type { Options } from './options.js';
import { appendSubmissions, generateSubmissions } from './prefill.js';
import { benchScript, runNode } from './process.js';
import { type Contender, measureInTurns, type Summary } from './rounds.js';
import type { SealResult, SealTask } from './seal-process.js';
import { openPool, type Services } from './services.js';

/** Rates are leaves per second of processor time; `cpuMicros` is per leaf. */
export type SealMeasurement = { leaves: number; summaries: Summary[]; workerMib: number | undefined };

/** The default of BATCH_MAX_LEAVES, and what a second of 2,000 submissions/s makes. */
const LARGE_BATCH = 65_536;
const SMALL_BATCH = 2_000;

/** Sealing in a process of its own, beside the hashing of the tree alone. */
export async function measureSeal(services: Services, options: Options): Promise<SealMeasurement> {
  return withStops(async (stops) => {
    const place = await sealedPlace(services, options);
    const pool = openPool(place.databaseUrl, stops);
    await migrate(pool);
    const { dir, projectId } = services;
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
      return run({ ...place, dir, batchMaxLeaves });
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

/** Fills the service's own database with `options.rows` sealed submissions. @returns what sealing them took */
export async function fillService(services: Services, options: Options): Promise<SealResult> {
  return withStops(async (stops) => {
    const { dir, projectId, databaseUrl } = services;
    await generateSubmissions({ pool: openPool(databaseUrl, stops), dir, projectId }, options.rows);
    return runSeal({ databaseUrl, dir, registerDir: registerDir(services), batchMaxLeaves: LARGE_BATCH });
  });
}

/** A database of its own, unless sealing is to be measured behind many rows: they are in the service's. */
async function sealedPlace(services: Services, { rows }: Options) {
  return rows > 0
    ? { databaseUrl: services.databaseUrl, registerDir: registerDir(services) }
    : {
        databaseUrl: await services.createDatabase('seal'),
        registerDir: join(services.dir, 'seal-register'),
      };
}

function registerDir({ env }: Services): string {
  return env.CHECKPOINT_REGISTER ?? '';
}

function runSeal(task: SealTask): Promise<SealResult> {
  return runNode<SealResult>([benchScript('seal-process'), JSON.stringify(task)]);
}
