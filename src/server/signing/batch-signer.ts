import type { KeyObject } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import type { SignedBatch, SigningBatch } from './signing-thread.js';

/**
 * Signs on a worker thread, in batches: the requests of one turn of the event loop are posted together, or as soon as
 * there are {@link FULL_BATCH} of them.
 */
type BatchSigner = {
  /** ECDSA P-256 with SHA-256 in DER. `key` is an index into the keys. Rejects if the thread exits. */
  sign(key: number, data: Uint8Array): Promise<Uint8Array>;
  close(): Promise<void>;
};

type Waiting = { data: Uint8Array; resolve: (signature: Uint8Array) => void; reject: (error: Error) => void };

/**
 * Lets the thread start while a long turn still queues. Batches of 4 cost the main thread 1.6 µs more per signature than
 * batches of 16, which cost 1.4 µs more than unlimited ones (40 signatures a turn, 56 µs of other work for each).
 */
const FULL_BATCH = 16;

/**
 * A signer that starts its thread when it is first used. Main-thread CPU per signature with 30 a turn on two busy cores:
 * 30 µs when signed on the main thread, 4 to 12 µs with `crypto.sign` and a callback (libuv's pool is woken for each),
 * 3 to 5 µs with this.
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

/** If the thread exits, its batches are rejected. The next batch starts a new thread. */
function startThread(
  keys: readonly KeyObject[],
  answered: (batch: SignedBatch) => void,
  ended: (error: Error) => void,
): Worker {
  const thread = new Worker(new URL('./signing-thread.js', import.meta.url), { workerData: [...keys] });
  thread.on('message', answered);
  thread.on('error', ended);
  thread.on('exit', (code) => ended(new Error(`the signing thread exited with code ${code}`)));
  return thread;
}
