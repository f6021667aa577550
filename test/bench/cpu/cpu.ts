import { readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { cpuMs, parentOf } from '../process.js';

/**
 * Processor time by part of the service. `server` is the API, or what it is compared with; `workerPostgres` is what
 * Postgres used for the connections of workers, and `postgres` all the rest of it.
 */
export type CpuParts = {
  server: number;
  worker: number;
  postgres: number;
  workerPostgres: number;
  nats: number;
};

/** The root process of each part; a part that does not run is left out. */
export type CpuRoots = { [P in Exclude<keyof CpuParts, 'workerPostgres'>]?: number };

const PARTS = ['server', 'worker', 'postgres', 'workerPostgres', 'nats'] as const;
/** A worker at rest looks for jobs: it uses less than 3 % of a core. */
const REST_MS = 500;
const REST_CPU_MS = 15;
const GIVE_UP_MS = 20_000;

/**
 * Milliseconds of processor time that each part has used so far: its root process, the processes that this has started,
 * and those of them that have ended. 0 without /proc.
 */
export function readCpu(roots: CpuRoots): CpuParts {
  const parents = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    const pid = /^\d+$/.test(name) ? Number(name) : 0;
    const parent = pid === 0 ? undefined : parentOf(pid);
    if (parent !== undefined) parents.set(parent, [...(parents.get(parent) ?? []), pid]);
  }
  const sum = (pid: number): number =>
    (parents.get(pid) ?? []).reduce((ms, child) => ms + sum(child), cpuMs(pid, { withEnded: true }) ?? 0);
  const read = (root: number | undefined) => (root === undefined ? 0 : sum(root));
  return {
    server: read(roots.server),
    worker: read(roots.worker),
    postgres: read(roots.postgres),
    workerPostgres: 0,
    nats: read(roots.nats),
  };
}

/** @returns the parts with what Postgres used for connections of workers apart, given that time */
export function splitPostgres(parts: CpuParts, workerPostgresMs: number): CpuParts {
  return { ...parts, postgres: parts.postgres - workerPostgresMs, workerPostgres: workerPostgresMs };
}

/** Waits until a process is at rest: what it does for requests that were answered belongs to their cost. */
export async function untilAtRest(pid: number): Promise<void> {
  const endMs = performance.now() + GIVE_UP_MS;
  for (let last = cpuMs(pid) ?? 0; performance.now() < endMs; ) {
    await delay(REST_MS);
    const now = cpuMs(pid) ?? 0;
    if (now - last <= REST_CPU_MS) return;
    last = now;
  }
}

/** @returns the microseconds of each part for one of `count` units of work */
export function cpuPerUnit(before: CpuParts, after: CpuParts, count: number): CpuParts {
  const each = PARTS.map((part) => [part, ((after[part] - before[part]) * 1000) / count]);
  return Object.fromEntries(each) as CpuParts;
}

/** The processor time of all parts together. */
export function allCpu(parts: CpuParts): number {
  return PARTS.reduce((sum, part) => sum + parts[part], 0);
}

/** What is spent until the answer: without workers, their connections and nats-server. */
export function answerCpu({ server, postgres }: CpuParts): number {
  return server + postgres;
}
