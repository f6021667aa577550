/** The processes of this machine that work in a directory, from proc(5). */
import { readdir, readFile, readlink } from 'node:fs/promises';

export type ProcessView = { pid: number; arguments: string };

/** The processes whose working directory is `directory` or below it. */
export async function findProcessesIn(directory: string): Promise<ProcessView[]> {
  const found: ProcessView[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    // A process may end at any moment.
    const cwd = await readlink(`/proc/${name}/cwd`).catch(() => '');
    if (!cwd.startsWith(directory)) continue;
    const line = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '');
    if (line !== '') found.push({ pid: Number(name), arguments: line.replaceAll('\0', ' ') });
  }
  return found;
}
