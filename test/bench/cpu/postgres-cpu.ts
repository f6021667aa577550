import { readdirSync } from 'node:fs';
import postgres from 'postgres';
import type { Pool } from '../../../src/server/database/connect.js';
import { cpuMs, parentOf } from '../process.js';

/** The processor time of a Postgres on this machine with all its processes, ended ones included; 0 without /proc. */
export async function postgresCpuMs(pool: Pool): Promise<number> {
  const [row] = await pool<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
  const postmaster = parentOf(row?.pid ?? 0);
  if (postmaster === undefined) return 0;
  const pids = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  const children = pids.filter((pid) => parentOf(pid) === postmaster);
  const ended = cpuMs(postmaster, { withEnded: true }) ?? 0;
  return children.reduce((sum, pid) => sum + (cpuMs(pid) ?? 0), ended);
}

/** Milliseconds of processor time by process. */
export type BackendMs = ReadonlyMap<number, number>;

/**
 * The processor time of the connections that workers have to a database; those that have ended are not in it. Asks over
 * a connection of its own.
 */
export async function workerBackendMs(url: string): Promise<BackendMs> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    const rows = await sql<{ pid: number }[]>`
      SELECT pid FROM pg_stat_activity WHERE application_name = 'attest worker'`;
    return new Map(rows.map(({ pid }) => [pid, cpuMs(pid) ?? 0]));
  } finally {
    await sql.end();
  }
}

/** What the connections of `after` have used since `before`. */
export function backendMsSince(before: BackendMs, after: BackendMs): number {
  return [...after].reduce((sum, [pid, ms]) => sum + ms - (before.get(pid) ?? 0), 0);
}
