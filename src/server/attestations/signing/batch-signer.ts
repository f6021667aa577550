import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { SignedStatement } from '../create/new-submission.js';
import type { SignedBatch, SigningBatch, SigningKey } from './signing-thread.js';

/**
 * Signs statements on worker threads, in batches: those of one turn of the event loop are posted together, once a thread has
 * nothing to do, or as soon as there are {@link FULL_BATCH} of them.
 */
type BatchSigner = {
  /** A signer for each key, in the order of the keys. */
  signers: readonly KeySigner[];
  close(): Promise<void>;
};

type KeySigner = {
  /** Signs a statement's text. Rejects if the thread exits. */
  sign(statement: string): Promise<SignedStatement>;
  /** The same for many at once, spread over the threads, with one promise for each {@link PIECE} of them. */
  signMany(statements: readonly string[]): Promise<SignedStatement[]>;
};

type Waiting = {
  statement: string;
  resolve: (signed: SignedStatement) => void;
  reject: (error: Error) => void;
};

/** Gets the signed statements of one batch, in order, or why there are none. */
type Settle = { resolve: (signed: SignedStatement[]) => void; reject: (error: Error) => void };

/**
 * Lets the thread start while a long turn still queues. With 64 clients it takes 38 µs for a statement, and 43 with batches
 * of 16.
 */
const FULL_BATCH = 64;

/** Of many signatures at once, those of one batch: the least that keeps several threads at work. */
const PIECE = 64;
/** The event loop has a core of its own, and Postgres wants some. */
const THREADS = Math.max(1, Math.min(4, availableParallelism() - 1));

/**
 * A signer that starts its threads when they are first used. Main-thread CPU per signature with 30 a turn on two busy
 * cores: 30 µs when signed on the main thread, 4 to 12 µs with `crypto.sign` and a callback (libuv's pool is woken for
 * each), 3 to 5 µs with this.
 */
export function createBatchSigner(keys: readonly SigningKey[]): BatchSigner {
  const queues = keys.map((): Waiting[] => []);
  const threads = Array.from({ length: THREADS }, () => createThread(keys));
  let posted = 0;
  let underWay = 0;
  let scheduled = false;

  const post = (key: number, statements: readonly string[], settle: Settle) =>
    threads[posted++ % threads.length]?.post(key, statements, settle);
  const postQueued = (key: number, taken: readonly Waiting[]) => {
    underWay++;
    const statements = taken.map(({ statement }) => statement);
    post(key, statements, {
      resolve: (signed) => {
        underWay--;
        send();
        for (const [i, waiting] of taken.entries()) waiting.resolve(signed[i] as SignedStatement);
      },
      reject: (error) => {
        underWay--;
        for (const waiting of taken) waiting.reject(error);
        schedule();
      },
    });
  };
  const send = () => {
    scheduled = false;
    if (underWay >= threads.length) return;
    for (const [key, queue] of queues.entries()) if (queue.length > 0) postQueued(key, queue.splice(0));
  };
  const schedule = () => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(send);
  };
  const signerOf = (queue: Waiting[], key: number): KeySigner => ({
    sign: (statement) =>
      new Promise((resolve, reject) => {
        queue.push({ statement, resolve, reject });
        if (queue.length === FULL_BATCH) postQueued(key, queue.splice(0));
        else schedule();
      }),
    signMany: async (statements) => {
      const pieces: Promise<SignedStatement[]>[] = [];
      for (let at = 0; at < statements.length; at += PIECE) {
        const piece = statements.slice(at, at + PIECE);
        pieces.push(new Promise((resolve, reject) => post(key, piece, { resolve, reject })));
      }
      return (await Promise.all(pieces)).flat();
    },
  });
  return {
    signers: queues.map(signerOf),
    close: async () => {
      await Promise.all(threads.map(({ close }) => close()));
    },
  };
}

/** A thread that starts with its first batch. If it exits, its batches are rejected, and the next one starts it again. */
function createThread(keys: readonly SigningKey[]) {
  const underWay = new Map<number, Settle>();
  let worker: Worker | undefined;
  let batches = 0;
  const onSigned = ({ batch, signed }: SignedBatch) => {
    const settle = underWay.get(batch);
    underWay.delete(batch);
    settle?.resolve(signed.split('\n').map(readSigned));
  };
  const onExit = (error: Error) => {
    worker = undefined;
    const rejected = [...underWay.values()];
    underWay.clear();
    for (const settle of rejected) settle.reject(error);
  };
  return {
    post: (key: number, statements: readonly string[], settle: Settle) => {
      // One text is copied to another thread in less time than many. JSON without whitespace has no line break.
      const message: SigningBatch = { batch: ++batches, key, statements: statements.join('\n') };
      underWay.set(message.batch, settle);
      worker ??= startWorker(keys, onSigned, onExit);
      worker.postMessage(message);
    },
    close: async () => {
      await worker?.terminate();
    },
  };
}

/** Hexadecimal digits of a leaf's hash. */
const HASH_DIGITS = 64;

function readSigned(line: string): SignedStatement {
  return { leafHash: line.slice(0, HASH_DIGITS), signature: line.slice(HASH_DIGITS) };
}

function startWorker(
  keys: readonly SigningKey[],
  answered: (batch: SignedBatch) => void,
  ended: (error: Error) => void,
): Worker {
  const worker = new Worker(new URL('./signing-thread.js', import.meta.url), { workerData: [...keys] });
  worker.on('message', answered);
  worker.on('error', ended);
  worker.on('exit', (code) => ended(new Error(`the signing thread exited with code ${code}`)));
  return worker;
}
