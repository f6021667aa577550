import { withShutdownHooks } from '../../src/server/core/shutdown.js';
import { fillService, pickIds } from './fill.js';
import { peakMib } from './process.js';
import { getter } from './requests.js';
import { type Measurement, meterOf, type RequestMeasures } from './roles.js';
import { type Contender, measureInTurns } from './rounds.js';
import { openAnotherService, readyUrl, type Services, startRole } from './services.js';

/** Over how many submissions reads are spread: many more than are kept. */
const MANY_IDS = 50_000;

/** Reads and bundles of submissions that were not read lately, in the log there is and in one of a million leaves. */
export async function measureCold(deps: RequestMeasures): Promise<Measurement> {
  const { services, options } = deps;
  return withShutdownHooks(async (hooks) => {
    const large = await openAnotherService(services, 'large', hooks);
    await fillService(large, options.coldRows);
    const contenders: Contender[] = [];
    const pids: number[] = [];
    for (const [of, rows] of [[services, options.rows] as const, [large, options.coldRows] as const]) {
      const api = await startRole(of, 'api');
      hooks.add(api.stop);
      pids.push(api.pid);
      contenders.push(...(await contend(deps, { of, rows, api })));
    }
    const [read, bundle, ...rest] = contenders;
    const summaries = await measureInTurns([read!, ...rest, bundle!], options);
    return { name: 'cold', summaries, apiMib: peakMib(pids[1] ?? 0), workerMib: undefined };
  });
}

type Log = { of: Services; rows: number; api: Awaited<ReturnType<typeof startRole>> };

async function contend(deps: RequestMeasures, { of, rows, api }: Log): Promise<Contender[]> {
  const paths = (await pickIds(of, rows, MANY_IDS)).map((id) => `/v1/attestations/${id}`);
  const get = getter({ ...deps, services: of });
  const target = { server: api, meter: meterOf(of, api) };
  await fetch(`${readyUrl(api)}${paths[0]}`, { headers: { authorization: `Bearer ${of.apiKey}` } });
  const bundles = paths.map((path) => `${path}/bundle`);
  return [
    await get(`read, ${rows} leaves`, target, paths),
    await get(`bundle, ${rows} leaves`, target, bundles),
  ];
}
