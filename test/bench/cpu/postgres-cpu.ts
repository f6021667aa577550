import { readdirSync } from 'node:fs';
import type { Pool } from '../../../src/server/store/database/connect.js';
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
