import type { KeyObject } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import type { SignedBatch, SigningBatch } from './signing-thread.js';

/**
 * Signs on a thread of its own, in batches: what is asked for in one turn of the event loop goes there together, or
 * as soon as it is enough for the thread to begin while the rest of the turn is under way.
 */
export type BatchSigner = {
  /** ECDSA P-256 with SHA-256 in DER, by the key at this place. */
  sign(key: number, data: Uint8Array): Promise<Uint8Array>;
  close(): Promise<void>;
};

type Waiting = { data: Uint8Array; resolve: (signature: Uint8Array) => void; reject: (error: Error) => void };

/** By measure: of smaller ones the hand-over costs more than it gains, larger ones leave one of two cores idle. */
const FULL_BATCH = 16;

/**
 * Starts the thread. A hand-over to Node's thread pool for every signature wakes a thread each time, which costs the
 * main thread more than signing itself would once all cores are busy; one for a batch of thirty does not.
 */
export function createBatchSigner(keys: readonly KeyObject[]): BatchSigner {
  const queues = keys.map((): Waiting[] => []);
  const underWay = new Map<number, Waiting[]>();
  let thread: Worker | undefined;
  let batches = 0;
  let scheduled = false;

  const send = () => {
    scheduled = false;
    for (const [key, queue] of queues.entries()) {
      const taken = queue.splice(0);
      if (taken.length > 0) post(key, taken);
    }
  };
  const post = (key: number, taken: Waiting[]) => {
    const data = Uint8Array.from(Buffer.concat(taken.map((waiting) => waiting.data)));
    const lengths = taken.map((waiting) => waiting.data.length);
    const message: SigningBatch = { batch: ++batches, key, data, lengths };
    underWay.set(message.batch, taken);
    thread ??= startThread(keys, onSigned, onExit);
    thread.postMessage(message, [data.buffer as ArrayBuffer]);
  };
  const onSigned = ({ batch, signatures, lengths }: SignedBatch) => {
    const taken = underWay.get(batch) ?? [];
    underWay.delete(batch);
    let at = 0;
    for (const [i, waiting] of taken.entries()) {
      const end = at + (lengths[i] ?? 0);
      waiting.resolve(signatures.subarray(at, end));
      at = end;
    }
  };
  const onExit = (error: Error) => {
    thread = undefined;
    for (const waiting of [...underWay.values()].flat()) waiting.reject(error);
    underWay.clear();
  };
  return {
    sign: (key, data) =>
      new Promise((resolve, reject) => {
        const queue = queues[key];
        queue?.push({ data, resolve, reject });
        if (queue?.length === FULL_BATCH) post(key, queue.splice(0));
        if (scheduled) return;
        scheduled = true;
        setImmediate(send);
      }),
    close: async () => {
      await thread?.terminate();
    },
  };
}

/** One that ends by itself fails what it was given; the next batch gets a new one. */
function startThread(
  keys: readonly KeyObject[],
  answered: (batch: SignedBatch) => void,
  ended: (error: Error) => void,
): Worker {
  const thread = new Worker(new URL('./signing-thread.js', import.meta.url), { workerData: [...keys] });
  thread.on('message', answered);
  thread.on('error', ended);
  thread.on('exit', (code) => ended(new Error(`the signing thread has ended with ${code}`)));
  return thread;
}
