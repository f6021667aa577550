import { setTimeout as delay } from 'node:timers/promises';
import { hasErrno } from '../core/files/errno.js';
import { untilAborted } from '../core/until-aborted.js';
import { EmbeddedError } from './embedded-error.js';
import { findProcessesIn } from './process-table.js';

/** Signals to send in turn; each is given `waitMs` to work before the next one follows. */
export type StopSteps = readonly { signal: NodeJS.Signals; waitMs: number }[];

const POLL_MS = 20;

/** Sends the signals in turn until `exited` resolves; true when it did within the time of the last one. */
export async function stopBySignals(
  target: { exited: Promise<unknown>; kill(signal: NodeJS.Signals): void },
  steps: StopSteps,
): Promise<boolean> {
  for (const { signal, waitMs } of steps) {
    target.kill(signal);
    const exited = target.exited.then(() => true);
    if (await untilAborted(exited, AbortSignal.timeout(waitMs)).catch(() => false)) return true;
  }
  return false;
}

/**
 * Stops servers of this name that a killed parent left running in `dir`, and returns when they are gone. The caller
 * holds the lock of the data directory, so none of them has an owner any more.
 */
export async function stopLeftovers(
  { log }: { log: { warn(fields: object, message: string): void } },
  dir: string,
  programName: string,
  steps: StopSteps,
): Promise<void> {
  const leftovers = await findProcessesIn(dir, programName);
  if (leftovers.length === 0) return;
  log.warn(
    { pids: leftovers.map(({ pid }) => pid), dir },
    `stopping ${programName} left running by a killed process`,
  );
  for (const { signal, waitMs } of steps) {
    if (await signalAndWait(dir, programName, signal, waitMs)) return;
  }
  throw new EmbeddedError('data_dir_in_use', `${programName} still runs in ${dir} and cannot be stopped.`);
}

/** Signals only the top of each process tree: a Postgres backend is stopped by its own parent. */
async function signalAndWait(
  dir: string,
  programName: string,
  signal: NodeJS.Signals,
  waitMs: number,
): Promise<boolean> {
  const running = await findProcessesIn(dir, programName);
  const pids = new Set(running.map(({ pid }) => pid));
  for (const { pid, parentPid } of running) if (!pids.has(parentPid)) killIfThere(dir, pid, signal);
  for (let waitedMs = 0; waitedMs < waitMs; waitedMs += POLL_MS) {
    if ((await findProcessesIn(dir, programName)).length === 0) return true;
    await delay(POLL_MS);
  }
  return false;
}

function killIfThere(dir: string, pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (hasErrno(error, 'ESRCH')) return;
    const message = `Process ${pid} still uses ${dir} and belongs to another user: stop it first.`;
    throw new EmbeddedError('data_dir_in_use', message, { cause: error });
  }
}
