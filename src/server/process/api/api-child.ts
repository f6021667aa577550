import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import type { FromApi, Questions, StartFailure, ToApi } from './api-process.js';

/** How a process ended. */
export type Exit = { code: number | null; signal: NodeJS.Signals | null };

/** An API process that this process has started. */
export type ApiChild = {
  readonly pid: number | undefined;
  /** Resolves when it serves; rejects if it ends before. */
  readonly ready: Promise<Extract<FromApi, { type: 'ready' }>>;
  readonly exited: Promise<Exit>;
  /** Resolves to undefined if it does not answer within the timeout, or ends. */
  ask: <Q extends keyof Questions>(question: Q) => Promise<Questions[Q] | undefined>;
  /** Lets it answer the requests in flight, kills it after 25 s, and waits for its end. */
  stop: () => Promise<void>;
  signal: (signal: NodeJS.Signals) => void;
};

const ANSWER_TIMEOUT_MS = 2_500;
/** As long as the service takes to stop at most. */
const STOP_TIMEOUT_MS = 25_000;

let asked = 0;

/**
 * Starts this program again, with the same arguments, as an API process. All of them accept on one socket, which the
 * operating system keeps open while one runs; so connections never pass through this process.
 */
export function startApiChild(): ApiChild {
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  // Metrics may be NaN or infinite, which JSON cannot say.
  cluster.setupPrimary({ serialization: 'advanced' });
  // Each takes one connection at a time, so that others wake up: of 64 at once, four processes got 12 to 26 each, and 3 to
  // 48 without it.
  const worker = cluster.fork({ UV_TCP_SINGLE_ACCEPT: '1' });
  // A message may not reach a process that is ending.
  worker.on('error', () => {});
  const answers = new Map<number, (value: Questions[keyof Questions] | undefined) => void>();
  const exited = once(worker, 'exit').then(([code, signal]): Exit => ({ code, signal }));
  void exited.then(() => {
    for (const end of [...answers.values()]) end(undefined);
  });
  worker.on('message', (message: FromApi) => {
    if (message.type === 'answer') answers.get(message.id)?.(message.value);
  });
  return {
    pid: worker.process.pid,
    ready: whenReady(worker, exited),
    exited,
    ask: (question) => {
      const id = asked++;
      return new Promise((resolve) => {
        const end = (value: unknown) => {
          clearTimeout(timer);
          answers.delete(id);
          resolve(value as Questions[typeof question] | undefined);
        };
        const timer = setTimeout(end, ANSWER_TIMEOUT_MS, undefined);
        answers.set(id, end);
        send(worker, { type: 'ask', id, question });
      });
    },
    stop: async () => {
      send(worker, { type: 'stop' });
      const timer = setTimeout(() => worker.process.kill('SIGKILL'), STOP_TIMEOUT_MS);
      await exited;
      clearTimeout(timer);
    },
    signal: (signal) => void worker.process.kill(signal),
  };
}

function whenReady(worker: Worker, exited: Promise<Exit>): ApiChild['ready'] {
  const ready = new Promise<Extract<FromApi, { type: 'ready' }>>((resolve, reject) => {
    worker.on('message', (message: FromApi) => {
      if (message.type === 'ready') resolve(message);
      if (message.type === 'failed') reject(errorOf(message.failure));
    });
    void exited.then(({ code, signal }) =>
      reject(new Error(`an API process ended before it was ready (${signal ?? `exit code ${code}`})`)),
    );
  });
  // Whoever waits for it hears of it.
  ready.catch(() => {});
  return ready;
}

function errorOf({ message, ...rest }: StartFailure): Error {
  return Object.assign(new Error(message), rest);
}

function send(worker: Worker, message: ToApi): void {
  if (worker.isConnected()) worker.send(message);
}
