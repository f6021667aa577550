import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { withShutdownHooks } from '../../../src/server/core/shutdown.js';
import { type Credentials, findConnections } from '../../../src/server/process/up.js';
import type { PacedLoad, PacedResult } from '../load/paced-load.js';
import type { Options } from '../options.js';
import { ATTEST, benchScript, peakMib, runNode, startNode } from '../process.js';
import { liftLimits, openPool, PROCESS_ENV, type Services } from '../services.js';

export type WitnessedMeasurement = PacedResult & { wantedPerSecond: number; upMib: number | undefined };

const PER_SECOND = 2_000;
const SAMPLES = 200;

/** How long submissions take from their 201 to being witnessed by `attest up` as it comes, under a steady load. */
export async function measureWitnessed(
  { dir }: Pick<Services, 'dir'>,
  options: Options,
): Promise<WitnessedMeasurement> {
  return withShutdownHooks(async (hooks) => {
    const dataDir = join(dir, 'up');
    const up = await startNode([ATTEST, 'up', '--json'], { env: { ...PROCESS_ENV, DATA_DIR: dataDir } });
    hooks.add(up.stop);
    const connections = await findConnections(dataDir);
    await liftLimits(openPool(connections?.databaseUrl ?? '', hooks));
    const credentials = JSON.parse(await readFile(join(dataDir, 'credentials.json'), 'utf8')) as Credentials;
    const load: PacedLoad = {
      baseUrl: credentials.base_url,
      apiKey: credentials.live_key,
      perSecond: PER_SECOND,
      warmUpSeconds: options.warmUpSeconds,
      seconds: options.witnessedSeconds,
      samples: SAMPLES,
    };
    const result = await runNode<PacedResult>([benchScript('load/paced-load'), JSON.stringify(load)]);
    return { ...result, wantedPerSecond: PER_SECOND, upMib: peakMib(up.pid) };
  });
}
