import { join } from 'node:path';
import { type ShutdownHooks, withShutdownHooks } from '../../src/server/core/shutdown.js';
import { untilAtRest } from './cpu/cpu.js';
import { findProfile, type Profiled, printProfile, recordRuns } from './cpu/profile.js';
import type { LoadGenerator, Meter } from './load/load.js';
import type { Options } from './options.js';
import { ATTEST, ATTEST_MODULES, peakMib, type StartedProcess, startNode } from './process.js';
import { type Contender, measureInTurns, type Summary } from './rounds.js';
import { type Services, startRole } from './services.js';

/** The figures of one measure, and the memory peaks of the two processes while it ran. */
export type Measurement = {
  name: string;
  summaries: Summary[];
  /** Bytes of an answer; undefined where it is not the same for both. */
  bytes?: number;
  apiMib: number | undefined;
  workerMib: number | undefined;
};

/** What every measure of requests is given. */
export type RequestMeasures = { services: Services; generator: LoadGenerator; options: Options };

/** The service's processes. */
export type Roles = { api: StartedProcess; worker: StartedProcess };
/** Starts a script of Node's, until the measure ends. */
export type Start = (args: string[]) => Promise<StartedProcess>;

/**
 * Runs one measure against an api and a worker process of its own, so that each starts equally fresh and the memory
 * peaks are its own.
 */
export async function withRoles(
  { services, options }: RequestMeasures,
  name: string,
  contend: (
    roles: Roles,
    start: Start,
    hooks: ShutdownHooks,
  ) => Promise<{ contenders: Contender[]; bytes?: number }>,
): Promise<Measurement> {
  const profileDir = options.profileDir && join(options.profileDir, name);
  const isProfiled = profileDir !== undefined;
  let profiled: Profiled | undefined;
  const measurement = await withShutdownHooks(async (hooks) => {
    const worker = await startRole(services, 'worker');
    hooks.add(worker.stop);
    const nodeArgs = isProfiled ? ['--cpu-prof', '--cpu-prof-dir', profileDir] : [];
    const api = await startRole(services, 'api', { nodeArgs, program: isProfiled ? ATTEST_MODULES : ATTEST });
    hooks.add(api.stop);
    const start = async (args: string[]) => {
      const started = await startNode(args);
      hooks.add(started.stop);
      return started;
    };
    const { contenders, bytes } = await contend({ api, worker }, start, hooks);
    const [limit, service] = contenders;
    let measured = contenders;
    if (isProfiled && limit !== undefined && service !== undefined) {
      // A profile is of one surface.
      const recorded = recordRuns(api.pid, service);
      profiled = recorded.profiled;
      measured = [limit, recorded.contender];
    }
    const summaries = await measureInTurns(measured, options);
    return {
      name,
      summaries,
      ...(bytes === undefined ? {} : { bytes }),
      apiMib: peakMib(api.pid),
      workerMib: peakMib(worker.pid),
    };
  });
  if (isProfiled && profiled !== undefined) await printProfile(name, await findProfile(profileDir), profiled);
  return measurement;
}

/** The processes whose time counts: with the service also its worker's, until all it was given is witnessed. */
export function meterOf(
  { pids, databaseUrl }: Services,
  server: StartedProcess,
  worker?: StartedProcess,
): Meter {
  const roots = { server: server.pid, ...pids };
  if (worker === undefined) return { roots };
  return {
    roots: { ...roots, worker: worker.pid },
    workerDatabaseUrl: databaseUrl,
    settle: () => untilAtRest(worker.pid),
  };
}
