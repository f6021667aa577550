import { withShutdownHooks } from '../../../src/server/core/shutdown.js';
import { pickIds, type ServiceOfSize } from '../fill.js';
import { peakMib } from '../process.js';
import { type Measurement, meterOf, type RequestMeasures } from '../roles.js';
import { type Contender, measureInTurns, type Summary } from '../rounds.js';
import { readyUrl, type Services, startRole } from '../services.js';
import { getter } from './requests.js';

/** Over how many submissions reads are spread: many more than are kept. */
const MANY_IDS = 50_000;

/** Reads and bundles of submissions that were not read lately, in logs of several sizes in turns. */
export async function measureCold(deps: RequestMeasures, serviceOf: ServiceOfSize): Promise<Measurement[]> {
  const { sizes } = deps.options;
  return withShutdownHooks(async (hooks) => {
    const logs: Log[] = [];
    for (const rows of sizes) logs.push({ of: await serviceOf(rows), rows });
    const reads: Contender[] = [];
    const bundles: Contender[] = [];
    const pids: number[] = [];
    for (const log of logs) {
      const api = await startRole(log.of, 'api');
      hooks.add(api.stop);
      pids.push(api.pid);
      const { read, bundle } = await contend(deps, log, api);
      reads.push(read);
      bundles.push(bundle);
    }
    const measurement = (name: string, summaries: Summary[]): Measurement => {
      const apiMib = Math.max(...pids.map((pid) => peakMib(pid) ?? 0)) || undefined;
      return { name, summaries, apiMib, workerMib: undefined };
    };
    return [
      measurement('cold read', await measureInTurns(reads, deps.options)),
      measurement('cold bundle', await measureInTurns(bundles, deps.options)),
    ];
  });
}

type Log = { of: Services; rows: number };

async function contend(
  deps: RequestMeasures,
  { of, rows }: Log,
  api: Awaited<ReturnType<typeof startRole>>,
): Promise<{ read: Contender; bundle: Contender }> {
  const paths = (await pickIds(of, rows, MANY_IDS)).map((id) => `/v1/attestations/${id}`);
  const get = getter({ ...deps, services: of });
  const target = { server: api, meter: meterOf(of, api) };
  await fetch(`${readyUrl(api)}${paths[0]}`, { headers: { authorization: `Bearer ${of.apiKey}` } });
  const bundles = paths.map((path) => `${path}/bundle`);
  return {
    read: await get(`${rows} leaves`, target, paths),
    bundle: await get(`bundle, ${rows} leaves`, target, bundles),
  };
}
