import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run, startProgram } from '../process.js';
import { type Measurement, meterOf, type RequestMeasures, withRoles } from '../roles.js';
import { CLIENT, sampleBatches } from './batch.js';
import { poster } from './requests.js';

const MODULE = fileURLToPath(new URL('../../../../test/bench/peers/go', import.meta.url));

/**
 * Durable entries beside Tessera's POSIX log, which has no keys, limits, metadata, signatures or database. Needs Go, and
 * the first time its module proxy.
 */
export async function measurePeers(deps: RequestMeasures): Promise<Measurement> {
  const { services } = deps;
  const program = join(services.dir, 'tessera-log');
  await run('go', ['build', '-C', MODULE, '-o', program, '.'], goEnv()).catch((error: unknown) => {
    throw new Error('peers needs Go on the PATH, and its module proxy the first time', { cause: error });
  });
  const log = join(services.dir, 'tessera');
  await mkdir(log);
  return withRoles(deps, 'peers', async ({ api, worker }, _start, hooks) => {
    const tessera = await startProgram(program, [log]);
    hooks.add(tessera.stop);
    const post = poster(deps);
    const meter = meterOf(services, api, worker);
    return {
      contenders: [
        { name: 'Tessera, POSIX', run: post(tessera, { roots: { server: tessera.pid } }, { path: '/add' }) },
        { name: 'one in a call', run: post(api, meter, { path: '/v1/attestations' }) },
        {
          name: '1,000 in a call, 8 connections',
          run: (seconds) => sampleBatches(deps, api, meter, { ...CLIENT, seconds }),
        },
      ],
    };
  });
}

/** What Go needs of the environment: where its caches and modules are. */
function goEnv(): Record<string, string> {
  const names = Object.keys(process.env).filter((name) => name === 'HOME' || name.startsWith('GO'));
  return Object.fromEntries(names.map((name) => [name, process.env[name] ?? '']));
}
