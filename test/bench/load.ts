import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openCacheDir } from '../../src/server/embedded/cache.js';
import { fetchDebianPackage } from '../../src/server/embedded/debian-package.js';
import { benchScript, cpuMs, run, runNode } from './process.js';
import type { Sample } from './rounds.js';

/** What to send. `paths` is a file with one path a line, of which each request takes one at random. */
export type Load = { baseUrl: string; apiKey: string; seconds: number } & (
  | { method: 'get'; paths: string }
  | { method: 'post'; path: string; keyed?: boolean }
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

const SCRIPT = fileURLToPath(new URL('../../../test/bench/load.lua', import.meta.url));

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

/** One sample of a load, with the processor time that the server of this pid spent on it. */
export async function sampleLoad(generator: LoadGenerator, pid: number, load: Load): Promise<Sample> {
  const before = cpuMs(pid);
  const { requests, seconds, ...rest } = await generator.send(load);
  const after = cpuMs(pid);
  const isKnown = before !== undefined && after !== undefined;
  return {
    perSecond: (requests - rest.failed) / seconds,
    ...rest,
    cpuMicros: isKnown ? ((after - before) * 1000) / requests : undefined,
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
  const what = load.method === 'get' ? ['get', load.paths] : ['post', load.path, load.keyed ? 'keyed' : ''];
  const time = ['-t1', `-c${CONNECTIONS}`, `-d${load.seconds}s`, '--timeout', '10s'];
  return [...time, '-s', SCRIPT, load.baseUrl, '--', load.apiKey, ...what];
}

function autocannonArgs(load: Load): string[] {
  return [benchScript('autocannon-load'), JSON.stringify({ ...load, connections: CONNECTIONS })];
}
