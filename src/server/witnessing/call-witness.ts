/** One call of a witness's client: bounded in time, and logged if it is slow. */
import { untilAborted } from '../core/until-aborted.js';
import { WitnessRequestError } from './clients/bounded-request.js';
import type { WitnessStage } from './witness-stage.js';

/** A request that takes longer is logged. */
const SLOW_MS = 5_000;

/** The log line's fields of one call. */
type WitnessCall = { origin: string; witness: string; treeSize: number; attempt: number };

/** Runs one call. Rejects if it takes longer than `witnessTimeoutMs` or the worker stops; its signal then aborts. */
export async function callWitness<T>(
  { log, settings, aborting }: WitnessStage,
  call: WitnessCall,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { witnessTimeoutMs } = settings;
  const controller = new AbortController();
  const { signal } = controller;
  const late = () =>
    controller.abort(new WitnessRequestError('timeout', `no answer within ${witnessTimeoutMs} ms`));
  const stop = () => controller.abort(new Error('the worker stops'));
  const slow = () => log.warn(call, `the witness has not answered for ${SLOW_MS / 1000} s`);
  const timers = [setTimeout(late, witnessTimeoutMs).unref(), setTimeout(slow, SLOW_MS).unref()];
  aborting.addEventListener('abort', stop);
  if (aborting.aborted) stop();
  try {
    return await untilAborted(run(signal), signal);
  } finally {
    for (const timer of timers) clearTimeout(timer);
    aborting.removeEventListener('abort', stop);
  }
}

/** The one line that says why a call failed. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
