import { Worker } from 'node:worker_threads';
import type { HashRequest } from './hash-thread.js';

/** The SHA-256 of a large object and of each of its parts. The promises reject if its thread exits. */
export type ObjectHash = {
  /** Adds bytes. Those in shared memory are not copied, and must stay as they are until `part` has resolved. */
  add(bytes: Uint8Array): void;
  /** SHA-256 of what was added since the last call. */
  part(): Promise<Uint8Array>;
  /** SHA-256 of all that was added. May be called once. */
  object(): Promise<Uint8Array>;
  /** Ends the thread. */
  close(): Promise<void>;
};

type Waiting = { resolve: (sha256: Uint8Array) => void; reject: (error: Error) => void };

/** A thread that keeps nothing: without limits and with the options of its process it would take more memory. */
const OPTIONS = { execArgv: [], resourceLimits: { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 32 } };

/** Starts a thread that hashes one object. */
export function openObjectHash(): ObjectHash {
  const waiting: Waiting[] = [];
  let exited: Error | undefined;
  const worker = new Worker(new URL('./hash-thread.js', import.meta.url), OPTIONS);
  const fail = (error: Error) => {
    exited ??= error;
    for (const { reject } of waiting.splice(0)) reject(exited);
  };
  worker.on('message', (sha256: Uint8Array) => waiting.shift()?.resolve(sha256));
  worker.on('error', fail);
  worker.on('exit', (code) => fail(new Error(`the thread that hashes an object exited with code ${code}`)));
  const post = (request: HashRequest) => worker.postMessage(request);
  const ask = (request: HashRequest) =>
    new Promise<Uint8Array>((resolve, reject) => {
      if (exited !== undefined) return reject(exited);
      waiting.push({ resolve, reject });
      post(request);
    });
  return {
    add: post,
    part: () => ask('part'),
    object: () => ask('object'),
    close: async () => {
      await worker.terminate();
    },
  };
}
