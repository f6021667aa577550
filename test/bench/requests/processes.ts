import { withShutdownHooks } from '../../../src/server/core/shutdown.js';
import { pickIds } from '../fill.js';
import { peakMib } from '../process.js';
import { type Measurement, meterOf, type RequestMeasures } from '../roles.js';
import { type Contender, measureInTurns } from '../rounds.js';
import { startRole } from '../services.js';
import { getter, poster } from './requests.js';

const COUNTS = [1, 2];
const IDS = 2_000;
const WARM_UP_TIMES = 2;

/**
 * Creates and reads with one API process and with two that share a port. Beside the load generator, Postgres and the worker
 * two cores have no room for a second one: there the processor time says what it costs, and the rate little.
 */
export async function measureProcesses(deps: RequestMeasures): Promise<Measurement[]> {
  const { services, options } = deps;
  return withShutdownHooks(async (hooks) => {
    const worker = await startRole(services, 'worker');
    hooks.add(worker.stop);
    const paths = (await pickIds(services, options.rows, IDS)).map((id) => `/v1/attestations/${id}`);
    const creates: Contender[] = [];
    const reads: Contender[] = [];
    const pids: number[] = [];
    for (const count of COUNTS) {
      const server = await startRole(services, 'api', { args: ['--processes', String(count)] });
      hooks.add(server.stop);
      pids.push(server.pid);
      const meter = meterOf(services, server, worker);
      const name = `${count} API process${count === 1 ? '' : 'es'}`;
      creates.push({ name, run: poster(deps)(server, meter, { path: '/v1/attestations' }) });
      reads.push(await getter(deps)(name, { server, meter }, paths));
    }
    // Code is compiled in each process, and each gets a part of the requests.
    const time = { ...options, warmUpSeconds: WARM_UP_TIMES * options.warmUpSeconds };
    const memory = () => ({ apiMib: peakMib(pids[0] ?? 0), workerMib: peakMib(worker.pid) });
    return [
      { name: 'create by API processes', summaries: await measureInTurns(creates, time), ...memory() },
      { name: 'read by API processes', summaries: await measureInTurns(reads, time), ...memory() },
    ];
  });
}
