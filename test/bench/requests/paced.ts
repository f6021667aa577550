import { withShutdownHooks } from '../../../src/server/core/shutdown.js';
import { type LoadResult, type Meter, sampleRun } from '../load/load.js';
import type { PacedLoad, PacedResult } from '../load/paced-load.js';
import { benchScript, peakMib, runNode } from '../process.js';
import { type Measurement, meterOf, type RequestMeasures } from '../roles.js';
import { type Contender, measureInTurns } from '../rounds.js';
import { readyUrl, startRole } from '../services.js';
import { poster } from './requests.js';

const RATES = [200, 2_000];
/** How many are looked at until they are witnessed; the fewest that the load takes. */
const LOOKS = 2;
const LOGS = [
  { name: 'request log', level: 'info' },
  { name: 'no request log', level: 'warn' },
];

/** Creates at steady rates and at full speed, with the request log and without. */
export async function measurePaced(deps: RequestMeasures): Promise<Measurement> {
  const { services, options } = deps;
  return withShutdownHooks(async (hooks) => {
    const worker = await startRole(services, 'worker');
    hooks.add(worker.stop);
    const contenders: Contender[] = [];
    let apiPid = 0;
    for (const { name, level } of LOGS) {
      const api = await startRole({ env: { ...services.env, LOG_LEVEL: level } }, 'api');
      hooks.add(api.stop);
      apiPid = api.pid;
      const meter = meterOf(services, api, worker);
      const load = { baseUrl: readyUrl(api), apiKey: services.apiKey, warmUpSeconds: 0, samples: LOOKS };
      for (const perSecond of RATES) {
        contenders.push({
          name: `${perSecond} a second, ${name}`,
          run: (seconds) => samplePaced(meter, { ...load, perSecond, seconds }),
        });
      }
      contenders.push({
        name: `full speed, ${name}`,
        run: poster(deps)(api, meter, { path: '/v1/attestations' }),
      });
    }
    const summaries = await measureInTurns(contenders, options);
    return { name: 'create at a pace', summaries, apiMib: peakMib(apiPid), workerMib: peakMib(worker.pid) };
  });
}

function samplePaced(meter: Meter, load: PacedLoad) {
  return sampleRun(meter, async (): Promise<LoadResult> => {
    const result = await runNode<PacedResult>([benchScript('load/paced-load'), JSON.stringify(load)]);
    return {
      requests: Math.round(result.perSecond * load.seconds) + result.failed,
      seconds: load.seconds,
      failed: result.failed,
      p50Ms: result.createP50Ms,
      p99Ms: result.createP99Ms,
      maxMs: result.maxMs,
    };
  });
}
