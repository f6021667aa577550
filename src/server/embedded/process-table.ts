import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

interface RunningProcess {
  pid: number;
  parentPid: number;
}

/**
 * The running processes of this program name whose working directory is `dir`, found in /proc; none on systems
 * without /proc. Both servers work in their own directory, so this finds them whatever a pid file says, and never a
 * process that merely got a dead one's number. `dir` itself may be missing.
 */
export async function findProcessesIn(dir: string, programName: string): Promise<RunningProcess[]> {
  const wanted = await stat(dir).catch(() => undefined);
  if (wanted === undefined) return [];
  const entries = await readdir('/proc').catch(() => []);
  const pids = entries.filter((entry) => /^\d+$/.test(entry));
  const found: RunningProcess[] = [];
  for (const pid of pids) {
    const process = await findNamed(pid, programName);
    if (process === undefined) continue;
    const workingDir = await stat(join('/proc', pid, 'cwd')).catch(() => undefined);
    if (workingDir?.dev === wanted.dev && workingDir.ino === wanted.ino) found.push(process);
  }
  return found;
}

/** Reads `pid (name) state ppid …` of proc(5); undefined when the process is another, gone, or a zombie. */
async function findNamed(pid: string, programName: string): Promise<RunningProcess | undefined> {
  const status = await readFile(join('/proc', pid, 'stat'), 'utf8').catch(() => '');
  const nameEnd = status.lastIndexOf(')');
  if (status.slice(status.indexOf('(') + 1, nameEnd) !== programName) return undefined;
  const [state, parentPid] = status.slice(nameEnd + 2).split(' ');
  if (state === 'Z' || state === 'X') return undefined;
  return { pid: Number(pid), parentPid: Number(parentPid) };
}
