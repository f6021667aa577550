import type { BatchLoad } from '../load/batch-load.js';
import { type LoadResult, type Meter, sampleRun } from '../load/load.js';
import { benchScript, runNode, type StartedProcess } from '../process.js';
import { type Measurement, meterOf, type RequestMeasures, withRoles } from '../roles.js';
import type { Contender } from '../rounds.js';
import { readyUrl } from '../services.js';
import { poster } from './requests.js';

/** As one client would send its many submissions. */
export const CLIENT = { connections: 8, items: 1_000, keyed: false };

/** Many submissions in a call, beside one; figures are of a submission, times of a call. */
export function measureBatch(deps: RequestMeasures): Promise<Measurement> {
  const { services } = deps;
  return withRoles(deps, 'batch', async ({ api, worker }) => {
    const meter = meterOf(services, api, worker);
    const many = (name: string, client: Omit<BatchLoad, 'baseUrl' | 'apiKey' | 'seconds'>): Contender => ({
      name,
      run: (seconds) => sampleBatches(deps, api, meter, { ...client, seconds }),
    });
    return {
      contenders: [
        { name: 'one in a call', run: poster(deps)(api, meter, { path: '/v1/attestations' }) },
        many('1,000 in a call, 8 connections', CLIENT),
        many('1,000 in a call, keyed', { ...CLIENT, keyed: true }),
        many('100 in a call, 8 connections', { ...CLIENT, items: 100 }),
      ],
    };
  });
}

/** One sample of calls with many submissions each. */
export function sampleBatches(
  { services: { apiKey } }: RequestMeasures,
  api: StartedProcess,
  meter: Meter,
  client: Omit<BatchLoad, 'baseUrl' | 'apiKey'>,
) {
  const load: BatchLoad = { baseUrl: readyUrl(api), apiKey, ...client };
  return sampleRun(meter, () => runNode<LoadResult>([benchScript('load/batch-load'), JSON.stringify(load)]));
}
