import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openCacheDir } from '../../../src/server/embedded/cache.js';
import { fetchDebianPackage } from '../../../src/server/embedded/debian-package.js';
import { type CpuRoots, cpuPerUnit, readCpu, splitPostgres } from '../cpu/cpu.js';
import { backendMsSince, workerBackendMs } from '../cpu/postgres-cpu.js';
import { benchScript, run, runNode } from '../process.js';
import type { Sample } from '../rounds.js';

/**
 * What to send. `paths` is a file with one path a line, of which each request takes one at random. `rest`: the text that
 * follows the artifact in the body.
 */
export type Load = { baseUrl: string; apiKey: string; seconds: number } & (
  | { method: 'get'; paths: string }
  | { method: 'post'; path: string; keyed?: boolean; rest?: string }
);

/** What a generator says of a run. */
export type LoadResult = {
  requests: number;
  seconds: number;
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
  failed: number;
};

/** Sends HTTP/1.1 requests over 64 connections, as fast as they are answered, from a process of its own. */
export type LoadGenerator = { name: string; send: (load: Load) => Promise<LoadResult> };

export const CONNECTIONS = 64;

const SCRIPT = fileURLToPath(new URL('../../../../test/bench/load/load.lua', import.meta.url));

/**
 * The cheapest generator that can be had: wrk on PATH or of Debian, because whatever it uses the servers beside it on
 * the same cores lack; else autocannon, which comes with npm.
 */
export async function openLoadGenerator(): Promise<LoadGenerator> {
  const wrk = (await findOnPath()) ?? (await fetchWrk().catch(() => undefined));
  if (wrk === undefined) return { name: 'autocannon', send: (load) => runNode(autocannonArgs(load)) };
  return {
    name: 'wrk',
    send: async (load) => {
      const { stdout } = await run(wrk.file, wrkArgs(load), wrk.env);
      return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as LoadResult;
    },
  };
}

/** How the processor time of a sample is measured. */
export type Meter = {
  roots: CpuRoots;
  /** The database that a worker is connected to, of the processes that count; by default there is none. */
  workerDatabaseUrl?: string;
  /** Waits until what was answered is done with; by default that is at once. */
  settle?: () => Promise<void>;
};

/** One sample of a load, with the processor time that every process spent on it. */
export function sampleLoad(generator: LoadGenerator, meter: Meter, load: Load): Promise<Sample> {
  return sampleRun(meter, () => generator.send(load));
}

/** One sample of what `run` does. */
export async function sampleRun(
  { roots, workerDatabaseUrl, settle }: Meter,
  run: () => Promise<LoadResult>,
): Promise<Sample> {
  const readBackends = async () =>
    workerDatabaseUrl === undefined ? new Map() : await workerBackendMs(workerDatabaseUrl);
  const backends = await readBackends();
  const before = readCpu(roots);
  const { requests, seconds, failed, p50Ms, p99Ms, maxMs } = await run();
  await settle?.();
  const after = readCpu(roots);
  const workerPostgresMs = backendMsSince(backends, await readBackends());
  const cpu = cpuPerUnit(before, splitPostgres(after, workerPostgresMs), requests);
  return {
    perSecond: (requests - failed) / seconds,
    p50Ms,
    p99Ms,
    maxMs,
    failed,
    cpuMicros: cpu.server,
    cpu,
  };
}

type Program = { file: string; env: Record<string, string> };

async function findOnPath(): Promise<Program | undefined> {
  const found = await run('sh', ['-c', 'command -v wrk']).catch(() => undefined);
  return found && { file: found.stdout.trim(), env: {} };
}

/** Debian's wrk with the one library it wants that systems lack. */
async function fetchWrk(): Promise<Program> {
  const cacheDir = await openCacheDir();
  const tree = await fetchDebianPackage('wrk', cacheDir);
  const library = await fetchDebianPackage('libluajit-5.1-2', cacheDir);
  const [machine = ''] = await readdir(join(library, 'usr/lib'));
  const env = { LD_LIBRARY_PATH: join(library, 'usr/lib', machine) };
  const program = { file: join(tree, 'usr/bin/wrk'), env };
  // It answers --version with its usage and 1; without its library with 127.
  await run('sh', ['-c', '"$0" --version > /dev/null; test $? -le 1', program.file], env);
  return program;
}

function wrkArgs(load: Load): string[] {
  const what =
    load.method === 'get'
      ? ['get', load.paths]
      : ['post', load.path, load.keyed ? 'keyed' : '', ...(load.rest === undefined ? [] : [load.rest])];
  const time = ['-t1', `-c${CONNECTIONS}`, `-d${load.seconds}s`, '--timeout', '10s'];
  return [...time, '-s', SCRIPT, load.baseUrl, '--', load.apiKey, ...what];
}

function autocannonArgs(load: Load): string[] {
  return [benchScript('load/autocannon-load'), JSON.stringify({ ...load, connections: CONNECTIONS })];
}
