import { readdirSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Contender, Sample } from '../rounds.js';
import { fixed, table } from '../table.js';

/** A processor profile as V8 writes it; times are microseconds of the machine's monotonic clock. */
type CpuProfile = {
  nodes: { id: number; callFrame: CallFrame; children?: number[] }[];
  samples: number[];
  startTime: number;
  /** Microseconds before each sample. */
  timeDeltas: number[];
};
type CallFrame = { functionName: string; url: string; lineNumber: number };

/** What a contender's runs took: when, and what each of the server's threads used meanwhile. */
export type Profiled = {
  spans: { startMicros: number; endMicros: number }[];
  threads: ThreadMicros;
  requests: number;
};

/** Microseconds of processor time by kind of thread. */
type ThreadMicros = { main: number; helpers: number; pool: number; workers: number };

const TOP = 25;
const IDLE = '(idle)';
/** Owners of less are shown together. */
const LEAST_MICROS = 0.75;
/** Node starts them in this order after the main thread: V8's helpers, one for signals, libuv's pool, then workers. */
const HELPERS = 5;
const SIGNALS = 1;
const POOL = 4;

/** The newest profile of a main thread in a folder: threads have numbers, and the main thread's is 0. */
export async function findProfile(dir: string): Promise<string> {
  const names = (await readdir(dir)).filter((name) => /\.0\.\d+\.cpuprofile$/.test(name)).sort();
  return join(dir, names.at(-1) ?? '');
}

/** Records what runs of a contender take of a server that is profiled, its warm-up aside. */
export function recordRuns(pid: number, contender: Contender): { profiled: Profiled; contender: Contender } {
  const profiled: Profiled = {
    spans: [],
    threads: { main: 0, helpers: 0, pool: 0, workers: 0 },
    requests: 0,
  };
  let isWarm = false;
  const run = async (seconds: number): Promise<Sample> => {
    const before = readThreads(pid);
    const startMicros = nowMicros();
    const sample = await contender.run(seconds);
    if (isWarm) {
      const after = readThreads(pid);
      profiled.spans.push({ startMicros, endMicros: nowMicros() });
      for (const kind of KINDS) profiled.threads[kind] += after[kind] - before[kind];
      profiled.requests += sample.perSecond * seconds;
    }
    isWarm = true;
    return sample;
  };
  return { profiled, contender: { ...contender, run } };
}

const KINDS = ['main', 'helpers', 'pool', 'workers'] as const;

function nowMicros(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

/** The processor time that the threads of a process have used so far. */
function readThreads(pid: number): ThreadMicros {
  const threads: ThreadMicros = { main: 0, helpers: 0, pool: 0, workers: 0 };
  const ids = readdirSync(`/proc/${pid}/task`).map(Number);
  for (const [n, id] of ids.sort((a, b) => a - b).entries()) {
    const [nanos] = readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8').split(' ');
    threads[kindOf(n)] += Number(nanos) / 1000;
  }
  return threads;
}

function kindOf(n: number): keyof ThreadMicros {
  if (n === 0) return 'main';
  if (n <= HELPERS) return 'helpers';
  return n <= HELPERS + SIGNALS + POOL ? 'pool' : 'workers';
}

/**
 * Prints what a request took of the server's processor time by thread, and of the main thread by innermost owner: the
 * folder, package or module of Node's whose function ran, or called what is built in. The lines add up to all that the
 * threads used. Then the functions that took most themselves.
 */
export async function printProfile(name: string, path: string, profiled: Profiled): Promise<void> {
  const profile = JSON.parse(await readFile(path, 'utf8')) as CpuProfile;
  const { threads, requests } = profiled;
  const each = (micros: number) => micros / requests;
  console.log(`\n${name}: ${path}`);
  const owners = selfTimes(profile, profiled.spans, ownersOf(profile));
  const sampled = sumOf(owners);
  const lines = [...owners]
    .map(([owner, micros]) => ({ owner, micros: (micros / sampled) * each(threads.main) }))
    .sort((a, b) => b.micros - a.micros);
  const shown = lines.filter(({ micros }) => micros >= LEAST_MICROS);
  const others = lines.filter(({ micros }) => micros < LEAST_MICROS);
  const rows = [
    ...shown.map(({ owner, micros }) => [owner, fixed(micros)]),
    [`${others.length} others`, fixed(others.reduce((sum, { micros }) => sum + micros, 0))],
    ['main thread', fixed(each(threads.main))],
    ['worker threads', fixed(each(threads.workers))],
    ["V8's helper threads", fixed(each(threads.helpers))],
    ["libuv's pool and the profiler", fixed(each(threads.pool))],
    ['all', fixed(each(threads.main + threads.workers + threads.helpers + threads.pool))],
  ];
  console.log(table([['CPU µs/req', ''], ...rows]));
  const places = selfTimes(
    profile,
    profiled.spans,
    new Map(profile.nodes.map(({ id, callFrame }) => [id, placeOf(callFrame)])),
  );
  for (const [place, micros] of [...places].sort((a, b) => b[1] - a[1]).slice(0, TOP)) {
    console.log(`${fixed((micros / sampled) * each(threads.main)).padStart(8)}  ${place}`);
  }
}

function sumOf(times: ReadonlyMap<string, number>): number {
  return [...times.values()].reduce((sum, micros) => sum + micros, 0);
}

/** Microseconds of the samples in the spans, by the names of their nodes, save idle time. */
function selfTimes(
  { samples, timeDeltas, startTime }: CpuProfile,
  spans: Profiled['spans'],
  nameOf: ReadonlyMap<number, string>,
): Map<string, number> {
  const self = new Map<string, number>();
  let at = startTime;
  samples.forEach((id, i) => {
    at += timeDeltas[i] ?? 0;
    const name = nameOf.get(id) ?? '';
    if (name === IDLE || !spans.some(({ startMicros, endMicros }) => at >= startMicros && at < endMicros))
      return;
    // A sample's own time ends where the next one begins.
    self.set(name, (self.get(name) ?? 0) + (timeDeltas[i + 1] ?? 0));
  });
  return self;
}

function ownersOf({ nodes }: CpuProfile): Map<number, string> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const owners = new Map<number, string>();
  const visit = (id: number, ownerAbove: string): void => {
    const node = byId.get(id);
    if (node === undefined) return;
    const owner = ownerOf(node.callFrame) ?? ownerAbove;
    owners.set(id, owner);
    for (const child of node.children ?? []) visit(child, owner);
  };
  visit(nodes[0]?.id ?? 0, '(root)');
  return owners;
}

/** Undefined of a function that is built in, which belongs to its caller. */
function ownerOf({ functionName, url }: CallFrame): string | undefined {
  if (url === '') return functionName.startsWith('(') ? functionName : undefined;
  const [, builtIn] = /^node:(?:internal\/)?([^/]+)/.exec(url) ?? [];
  if (builtIn !== undefined) return `node:${builtIn}`;
  const [, dependency] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url) ?? [];
  return dependency ?? url.replace(/^.*\/dist\//, '').replace(/\/[^/]*$/, '');
}

function placeOf({ functionName, url, lineNumber }: CallFrame): string {
  const name = functionName || '(anonymous)';
  if (url === '') return name;
  const short = url.replace(/^file:\/\/.*\/(dist|node_modules)\//, '$1/');
  return `${name}  ${short}:${lineNumber + 1}`;
}
