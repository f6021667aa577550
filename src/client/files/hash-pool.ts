/** Threads that hash files. Node only. */
import type { Worker } from 'node:worker_threads';
import { divideFiles } from './hash-jobs.js';
import type { ThreadData, ThreadJob, ThreadProgress, ThreadReply } from './hash-thread.js';

/** A file that was hashed, or what is wrong with it. SHA-256 in lower-case hex. */
type Hashed = { readonly bytes: number; readonly sha256: string; readonly problem?: string | undefined };

type PoolOptions = {
  /** Absolute path of the folder that the files are in. */
  readonly root: string;
  readonly files: readonly string[];
  /** Whether a file may be a symbolic link. */
  readonly follow: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Called with the number of bytes that were read. */
  readonly onBytes: (bytes: number) => void;
};

/** Many small files are one message. */
const MAX_JOB_FILES = 128;

/** A thread has its next job when it ends one. */
const JOBS_PER_THREAD = 2;

/** How far threads may be ahead of what was taken, in files per thread. */
const MAX_AHEAD = 4096;

/**
 * Hashes files on as many threads as there are cores, and yields the results in their order. After the first problem the
 * files that follow are only opened. Throws the signal's reason, and an Error if a thread fails.
 */
export async function* hashAll(options: PoolOptions): AsyncGenerator<Hashed> {
  const { files, signal } = options;
  const pool = startPool(options);
  try {
    for (let at = 0; at < files.length; at++) {
      let result = pool.take(at);
      while (result === undefined) {
        await pool.reply();
        signal?.throwIfAborted();
        result = pool.take(at);
      }
      yield result;
    }
  } finally {
    await pool.end();
  }
}

type Pool = {
  /** The result of a file if it is there; the next time, that of the file after it. Hands out work. */
  take(at: number): Hashed | undefined;
  /** Waits for a thread's reply, or for the signal. Throws if a thread failed. */
  reply(): Promise<void>;
  end(): Promise<void>;
};

function startPool({ root, files, follow, signal, onBytes }: PoolOptions): Pool {
  const threads = Math.min(process.getBuiltinModule('node:os').availableParallelism(), files.length);
  const jobFiles = Math.min(MAX_JOB_FILES, Math.ceil(files.length / (threads * JOBS_PER_THREAD)));
  const jobs = divideFiles(files.length, { jobFiles, maxAhead: threads * MAX_AHEAD });
  const results = new Map<number, Hashed>();
  let [taken, isOpenedOnly, wake] = [0, false, () => {}];
  let failure: Error | undefined;
  const workers = startThreads(threads, { root, follow }, (message) => {
    if (message instanceof Error) failure ??= message;
    else if (message.read > 0) onBytes(message.read);
    if ('from' in message) {
      for (const [place, result] of resultsOf(message).entries()) results.set(message.from + place, result);
      isOpenedOnly ||= message.problems.length > 0;
      jobs.end(message.from, message.bytes.length);
    }
    wake();
  });
  const handOut = () => {
    for (const worker of workers) {
      while (worker.jobs < JOBS_PER_THREAD) {
        const job = jobs.take(taken);
        if (job === undefined) return;
        worker.begin({ from: job.from, paths: files.slice(job.from, job.to), isOpenedOnly });
      }
    }
  };
  const abort = () => wake();
  signal?.addEventListener('abort', abort, { once: true });
  return {
    take: (at) => {
      const result = results.get(at);
      results.delete(at);
      taken = at;
      return result;
    },
    reply: async () => {
      if (signal?.aborted || failure !== undefined) return check(failure);
      handOut();
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      check(failure);
    },
    end: async () => {
      signal?.removeEventListener('abort', abort);
      await Promise.all(workers.map(({ end }) => end()));
    },
  };
}

function check(failure: Error | undefined): void {
  if (failure !== undefined) throw failure;
}

function resultsOf({ bytes, hashes, problems }: ThreadReply): Hashed[] {
  const found = new Map(problems);
  return bytes.map((length, place) => ({ bytes: length, sha256: hashes[place]!, problem: found.get(place) }));
}

type Thread = { jobs: number; begin(job: ThreadJob): void; end(): Promise<unknown> };

/** Starts threads; `onMessage` gets the bytes read meanwhile, replies, and an Error of a thread that ended. */
function startThreads(
  count: number,
  workerData: ThreadData,
  onMessage: (message: ThreadProgress | ThreadReply | Error) => void,
): Thread[] {
  const { Worker } = process.getBuiltinModule('node:worker_threads');
  // Not within `new Worker()`: of that, bundlers for browsers would make a script for them.
  const program = new URL('./hash-thread.js', import.meta.url);
  return Array.from({ length: count }, () => {
    const worker: Worker = new Worker(program, { execArgv: [], env: {}, workerData });
    const thread: Thread = {
      jobs: 0,
      begin: (job) => {
        thread.jobs++;
        worker.postMessage(job);
      },
      end: () => worker.terminate(),
    };
    worker.on('message', (message: ThreadProgress | ThreadReply) => {
      if ('from' in message) thread.jobs--;
      onMessage(message);
    });
    worker.on('error', (error) => {
      onMessage(new Error(`a hashing thread failed: ${error.message}`, { cause: error }));
    });
    return thread;
  });
}
