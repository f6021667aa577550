import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** A process that this one has started and stops. */
export type StartedProcess = {
  pid: number;
  /** The first line it printed, which means that it is ready. */
  ready: string;
  /** Asks it to stop and waits for its end; may be called again. */
  stop(): Promise<void>;
};

/** The program itself. */
export const ATTEST = fileURLToPath(new URL('../../attest/main.js', import.meta.url));

/** The same as modules: what a profile names by file. */
export const ATTEST_MODULES = fileURLToPath(new URL('../../src/main.js', import.meta.url));

const STOP_MS = 20_000;
/** Of what a quiet program said, its end is in the error when it fails. */
const MAX_SAID = 2_000;
/** What the program says to whoever stops it. */
const STOPPING = 'shutting down; ';
/** What has been started and has not ended yet. */
const running = new Set<Pick<StartedProcess, 'stop'>>();
/** User and system time in /proc are in hundredths of a second on every Linux that runs Node. */
const MS_PER_TICK = 10;

/** The option of Node's that `npm start` and docs/operating.md run the program with. */
export const NODE_OPTION = '--max-semi-space-size=32';

/** The path of a script below this folder, by its name there, as `load/grpc-load`. */
export function benchScript(name: string): string {
  return fileURLToPath(new URL(`./${name}.js`, import.meta.url));
}

/**
 * Starts a Node process and waits for its first line. It leads its own process group, so that Ctrl-C reaches this
 * process alone; it is killed should this one end without having stopped it.
 */
export function startNode(
  args: readonly string[],
  { env = {}, nodeArgs = [] }: { env?: Record<string, string>; nodeArgs?: readonly string[] } = {},
): Promise<StartedProcess> {
  return startProgram(process.execPath, [...nodeArgs, ...args], env);
}

/** The same of any program. */
export async function startProgram(
  file: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<StartedProcess> {
  const child = spawn(file, args, {
    env: { PATH: process.env.PATH ?? '', ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  createInterface({ input: child.stderr }).on('line', (line) => {
    if (!line.startsWith(STOPPING)) console.error(line);
  });
  const kill = () => void child.kill('SIGKILL');
  process.once('exit', kill);
  const ended = once(child, 'exit').finally(() => process.off('exit', kill));
  const failed = ended.then(([code, signal]) =>
    Promise.reject(new Error(`${args.join(' ').slice(0, 200)} ended (${code ?? signal})`)),
  );
  failed.catch(() => {});
  const [ready] = await Promise.race([once(createInterface({ input: child.stdout }), 'line'), failed]);
  const started = { pid: child.pid ?? 0, ready: String(ready), stop: () => stop(child, ended) };
  running.add(started);
  ended.catch(() => {}).finally(() => running.delete(started));
  return started;
}

/** Stops every process that this one has started and that runs. */
export async function stopAll(): Promise<void> {
  await Promise.all([...running].map((started) => started.stop()));
}

/** Runs a Node script to its end. @returns what it printed, parsed as JSON */
export async function runNode<T>(args: readonly string[], env: Record<string, string> = {}): Promise<T> {
  const { stdout } = await run(process.execPath, args, env);
  return JSON.parse(stdout) as T;
}

/** Where a program runs, what is called with its id once it does, and whether what it says on its way is dropped. */
type RunOptions = { cwd?: string; onStarted?: (pid: number) => void; isQuiet?: boolean };

/** Runs a program to its end, killed should this process end before. Throws when it fails. */
export async function run(
  file: string,
  args: readonly string[],
  env: Record<string, string> = {},
  { cwd, onStarted, isQuiet = false }: RunOptions = {},
): Promise<{ stdout: string }> {
  const child = spawn(file, args, {
    cwd,
    env: { PATH: process.env.PATH ?? '', ...env },
    detached: true,
    stdio: ['ignore', 'pipe', isQuiet ? 'pipe' : 'inherit'],
  });
  onStarted?.(child.pid ?? 0);
  const kill = () => void child.kill('SIGKILL');
  const started = { stop: async () => kill() };
  process.once('exit', kill);
  running.add(started);
  let stdout = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-MAX_SAID);
  });
  const [code, signal] = await once(child, 'close').finally(() => {
    process.off('exit', kill);
    running.delete(started);
  });
  if (code !== 0)
    throw new Error(`${file} ${args.join(' ').slice(0, 200)} ended with ${code ?? signal} ${said}`.trimEnd());
  return { stdout };
}

async function stop(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  child.kill('SIGINT');
  await ended.finally(() => clearTimeout(timer));
}

/**
 * The processor time a process has used, all its threads together; undefined where there is no /proc.
 *
 * @param options.withEnded what its children used that have ended is added
 */
export function cpuMs(pid: number, { withEnded = false } = {}): number | undefined {
  const fields = statFields(pid);
  if (fields === undefined) return undefined;
  const own = Number(fields[11]) + Number(fields[12]);
  return (withEnded ? own + Number(fields[13]) + Number(fields[14]) : own) * MS_PER_TICK;
}

/** The processor time that the processes used which this one has started and which have ended; undefined without /proc. */
export function endedCpuMs(): number | undefined {
  const all = cpuMs(process.pid, { withEnded: true });
  const own = cpuMs(process.pid);
  return all === undefined || own === undefined ? undefined : all - own;
}

/** The process that started this one; undefined when it has ended, or where there is no /proc. */
export function parentOf(pid: number): number | undefined {
  const fields = statFields(pid);
  return fields && Number(fields[1]);
}

/** The fields of /proc/<pid>/stat from the third on: field 2 is the program's name and may hold anything. */
function statFields(pid: number): string[] | undefined {
  const stat = readProc(pid, 'stat');
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** The memory a process has resident, in MiB; undefined where there is no /proc. */
export function residentMib(pid: number): number | undefined {
  return statusMib(pid, 'VmRSS');
}

/** Forgets the most memory that a process has had, for `peakMib` to speak of what follows. */
export function startPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** The most memory a process has had resident since its start, in MiB; undefined where there is no /proc. */
export function peakMib(pid: number): number | undefined {
  return statusMib(pid, 'VmHWM');
}

function statusMib(pid: number, name: 'VmRSS' | 'VmHWM'): number | undefined {
  const line = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(readProc(pid, 'status') ?? '');
  return line === null ? undefined : Number(line[1]) / 1024;
}

function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return undefined;
  }
}
