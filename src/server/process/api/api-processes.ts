import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../core/logger.js';
import type { ShutdownHooks } from '../../core/shutdown.js';
import { shared } from '../../ops/gauges.js';
import type { MetricsSnapshot } from '../../ops/metrics.js';
import type { Check } from '../../ops/ops-listener.js';
import type { ApiAddresses } from '../addresses.js';
import { type ApiChild, type Exit, startApiChild } from './api-child.js';
import type { FromApi } from './api-process.js';

/** API processes that share one port. */
export type ApiProcesses = {
  readonly addresses: ApiAddresses;
  /** A check fails if it fails in every process that answers. */
  readonly checks: Check[];
  /** The metrics of the processes that answer. */
  readMetrics: () => Promise<MetricsSnapshot[]>;
  countReady: () => number;
};

type ProcessesDeps = { count: number; log: Logger; onDeath: () => void };

/** The process that serves now; undefined while it is started again. */
type Slot = { child: ApiChild | undefined };

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 30_000;
/** A process that ran this long is restarted without delay. */
const STABLE_MS = 60_000;

/**
 * Starts API processes, and starts those again that die, after 100 ms and twice as long each time, up to 30 s. SIGHUP
 * makes each read its certificate again; SIGUSR2 replaces them one by one, each after its successor serves. Throws if one
 * does not start. Shutdown stops all at once.
 */
export async function startApiProcesses(deps: ProcessesDeps, hooks: ShutdownHooks): Promise<ApiProcesses> {
  const { count, log } = deps;
  const stopping = new AbortController();
  const running = new Set<ApiChild>();
  const slots: Slot[] = [];
  const start = () => {
    const child = startApiChild();
    running.add(child);
    void child.exited.then(() => running.delete(child));
    return child;
  };
  hooks.add(async () => {
    stopping.abort();
    await Promise.all([...running].map((child) => child.stop()));
  });
  // Alone, so that what is wrong for all is reported once.
  const first = start();
  const { ready: addresses, checks } = await first.ready;
  const others = Array.from({ length: count - 1 }, start);
  await Promise.all(others.map((child) => child.ready));
  const keep = keeper({ ...deps, start, stopping: stopping.signal });
  for (const child of [first, ...others]) {
    const slot: Slot = { child };
    slots.push(slot);
    keep(slot, child);
    log.info({ api_pid: child.pid }, 'an API process serves');
  }
  onSignal('SIGHUP', hooks, () => {
    for (const { child } of slots) child?.signal('SIGHUP');
  });
  const replace = once(() => replaceAll(slots, { start, keep, log, stopping: stopping.signal }));
  onSignal('SIGUSR2', hooks, replace);
  const serving = () => slots.flatMap(({ child }) => child ?? []);
  return {
    addresses,
    checks: sharedChecks(checks, serving),
    readMetrics: () => askAll(serving(), 'metrics'),
    countReady: () => serving().length,
  };
}

type Keep = (slot: Slot, child: ApiChild) => void;

/** Starts the process of a slot again whenever it dies. */
function keeper({
  log,
  onDeath,
  start,
  stopping,
}: ProcessesDeps & { start: () => ApiChild; stopping: AbortSignal }): Keep {
  const revive = async (slot: Slot, firstDelayMs: number) => {
    for (let delayMs = firstDelayMs; !stopping.aborted; delayMs = Math.min(2 * delayMs, MAX_DELAY_MS)) {
      await delay(delayMs, undefined, { signal: stopping }).catch(() => {});
      if (stopping.aborted) return;
      const child = start();
      const isReady = await child.ready.then(
        () => true,
        (err: unknown) => {
          if (!stopping.aborted) log.error({ err }, 'an API process did not start; trying again');
          return false;
        },
      );
      if (!isReady) continue;
      log.info({ api_pid: child.pid }, 'an API process serves again');
      slot.child = child;
      watch(slot, child, delayMs);
      return;
    }
  };
  const watch = (slot: Slot, child: ApiChild, delayMs: number) => {
    const startedMs = performance.now();
    void child.exited.then(({ code, signal }: Exit) => {
      if (stopping.aborted || slot.child !== child) return;
      slot.child = undefined;
      onDeath();
      log.error({ api_pid: child.pid, code, signal }, 'an API process died; starting another');
      const isStable = performance.now() - startedMs >= STABLE_MS;
      return revive(slot, isStable ? FIRST_DELAY_MS : Math.min(2 * delayMs, MAX_DELAY_MS));
    });
  };
  return (slot, child) => watch(slot, child, FIRST_DELAY_MS / 2);
}

type Replacing = { start: () => ApiChild; keep: Keep; log: Logger; stopping: AbortSignal };

/** Replaces the processes one by one. If a successor does not start, those that are left go on. */
async function replaceAll(slots: readonly Slot[], { start, keep, log, stopping }: Replacing): Promise<void> {
  log.info('replacing the API processes one by one');
  for (const slot of slots) {
    const old = slot.child;
    if (old === undefined) continue;
    const next = start();
    try {
      await next.ready;
    } catch (err) {
      log.error({ err }, 'an API process did not start; the others are not replaced');
      return;
    }
    if (stopping.aborted) return;
    // It died meanwhile, and is being started anew.
    if (slot.child !== old) {
      await next.stop();
      continue;
    }
    slot.child = next;
    keep(slot, next);
    await old.stop();
    log.info({ api_pid: next.pid, replaced_pid: old.pid }, 'an API process was replaced');
  }
  log.info('the API processes were replaced');
}

function sharedChecks(
  names: Extract<FromApi, { type: 'ready' }>['checks'],
  serving: () => readonly ApiChild[],
): Check[] {
  const ask = shared(() => askAll(serving(), 'reasons'));
  return names.map((name, n) => ({
    ...name,
    asks: 'the API processes',
    check: async () => {
      const reasons = (await ask()).map((each) => each[n]);
      if (reasons.length === 0) return 'no API process answers';
      return reasons.includes(undefined) ? undefined : reasons[0];
    },
  }));
}

async function askAll<Q extends 'metrics' | 'reasons'>(children: readonly ApiChild[], question: Q) {
  const answers = await Promise.all(children.map((child) => child.ask(question)));
  return answers.flatMap((answer) => (answer === undefined ? [] : [answer]));
}

function onSignal(signal: NodeJS.Signals, hooks: ShutdownHooks, handle: () => void): void {
  process.on(signal, handle);
  hooks.add(async () => process.off(signal, handle));
}

/** Starts the work unless it is under way. */
function once(work: () => Promise<void>): () => void {
  let isRunning = false;
  return () => {
    if (isRunning) return;
    isRunning = true;
    void work().finally(() => {
      isRunning = false;
    });
  };
}
