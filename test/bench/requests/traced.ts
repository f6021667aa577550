import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ShutdownHooks, withShutdownHooks } from '../../../src/server/core/shutdown.js';
import { peakMib } from '../process.js';
import { type Measurement, meterOf, type RequestMeasures } from '../roles.js';
import { type Contender, measureInTurns } from '../rounds.js';
import { startRole } from '../services.js';
import { poster } from './requests.js';

/** Creation with and without telemetry, one in a hundred traced. The collector takes all and reads nothing. */
export async function measureTraced(deps: RequestMeasures): Promise<Measurement> {
  const { services, options } = deps;
  return withShutdownHooks(async (hooks) => {
    const worker = await startRole(services, 'worker');
    hooks.add(worker.stop);
    const telemetry = {
      OTEL_EXPORTER_OTLP_ENDPOINT: await startSink(hooks),
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    };
    const traced = (share: string) => ({ ...telemetry, OTEL_TRACES_SAMPLER_ARG: share });
    const contenders: Contender[] = [];
    const pids: number[] = [];
    for (const [name, env] of [
      ['no telemetry', {}],
      ['1 % traced', traced('0.01')],
      ['all traced', traced('1')],
    ] as const) {
      const api = await startRole({ env: { ...services.env, ...env } }, 'api');
      hooks.add(api.stop);
      pids.push(api.pid);
      contenders.push({
        name,
        run: poster(deps)(api, meterOf(services, api), { path: '/v1/attestations' }),
      });
    }
    const summaries = await measureInTurns(contenders, options);
    return {
      name: 'create, traced',
      summaries,
      apiMib: peakMib(pids[1] ?? 0),
      workerMib: peakMib(worker.pid),
    };
  });
}

async function startSink(hooks: ShutdownHooks): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.end());
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  hooks.add(async () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
