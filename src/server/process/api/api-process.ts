/** The side of an API process that shares its port with others: it answers to the process that started it. */
import cluster from 'node:cluster';
import type { Metrics, MetricsSnapshot } from '../../ops/metrics.js';
import { type Check, findReasons } from '../../ops/ops-listener.js';
import type { ApiAddresses } from '../addresses.js';

/** The requests to an API process. */
export type Questions = {
  metrics: MetricsSnapshot;
  /** Why each check fails, in the order of `checks`; undefined for those that pass. */
  reasons: readonly (string | undefined)[];
};

/** An error as it crosses a process boundary; `code`, `address` and `port` are those of a failed listen. */
export type StartFailure = { message: string; code?: string; address?: string; port?: number };

/** The messages of an API process; `checks` are names and environments. */
export type FromApi =
  | { type: 'ready'; ready: ApiAddresses; checks: Omit<Check, 'check'>[] }
  | { type: 'failed'; failure: StartFailure }
  | { type: 'answer'; id: number; value: Questions[keyof Questions] };

/** The messages to it. */
export type ToApi = { type: 'stop' } | { type: 'ask'; id: number; question: keyof Questions };

/** The process that started this one. */
export type Parent = {
  /** Aborts when this process must stop. */
  readonly stop: AbortSignal;
  /** Says that this process serves, and answers questions from now on. */
  ready: (addresses: ApiAddresses, of: Answering) => Promise<void>;
  /** Says why this process does not start. */
  failed: (error: Error) => Promise<void>;
};

type Answering = { checks: readonly Check[]; metrics: Pick<Metrics, 'snapshot'> };

/** Shorter than the timeout of the one who asks. */
const CHECK_TIMEOUT_MS = 1_500;

/** Returns the parent if this process is one of several that share a port; undefined if it is on its own. */
export function openParent(): Parent | undefined {
  if (!cluster.isWorker) return undefined;
  const stopping = new AbortController();
  let answering: Answering | undefined;
  process.on('message', (message: ToApi) => {
    if (message.type === 'stop') stopping.abort();
    else if (answering !== undefined) void answer(message, answering);
  });
  return {
    stop: stopping.signal,
    ready: (ready, of) => {
      answering = of;
      const checks = of.checks.map(({ check: _, ...described }) => described);
      return send({ type: 'ready', ready, checks });
    },
    failed: (error) => send({ type: 'failed', failure: describe(error) }),
  };
}

async function answer(
  { id, question }: Extract<ToApi, { type: 'ask' }>,
  { checks, metrics }: Answering,
): Promise<void> {
  const value =
    question === 'metrics' ? await metrics.snapshot() : await findReasons(checks, CHECK_TIMEOUT_MS);
  await send({ type: 'answer', id, value });
}

function describe(error: Error & Partial<StartFailure>): StartFailure {
  const { message, code, address, port } = error;
  return {
    message,
    ...(code === undefined ? {} : { code }),
    ...(address === undefined ? {} : { address }),
    ...(port === undefined ? {} : { port }),
  };
}

/** Resolves once the message is written, or cannot be: a process whose parent is gone ends anyway. */
function send(message: FromApi): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve();
    else process.send(message, undefined, undefined, () => resolve());
  });
}
