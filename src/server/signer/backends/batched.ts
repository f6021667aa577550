type Waiting = {
  data: Uint8Array;
  signal: AbortSignal;
  resolve: (signature: Uint8Array) => void;
  reject: (error: Error) => void;
};

type Limits = {
  /** Requests that are open at once. */
  requests: number;
  /** The most signatures of one request. */
  batch: number;
};

const TIMEOUT_MS = 2_500;

/**
 * Makes single signatures of a function that makes many: what is wanted in one turn of the event loop, or while all
 * requests are open, goes together. `signMany` returns a signature, or an error, for each.
 */
export function batched(
  signMany: (messages: readonly Uint8Array[], signal: AbortSignal) => Promise<(Uint8Array | Error)[]>,
  { requests, batch }: Limits,
): (data: Uint8Array, signal: AbortSignal) => Promise<Uint8Array> {
  const queue: Waiting[] = [];
  let open = 0;
  let scheduled = false;

  const post = async (taken: readonly Waiting[]) => {
    open++;
    const messages = taken.map(({ data }) => data);
    const results = await signMany(messages, AbortSignal.timeout(TIMEOUT_MS)).catch((error: Error) =>
      taken.map(() => error),
    );
    open--;
    for (const [i, { resolve, reject }] of taken.entries()) {
      const result = results[i] ?? new Error('there is no signature');
      if (result instanceof Error) reject(result);
      else resolve(result);
    }
    send();
  };
  const send = () => {
    scheduled = false;
    while (open < requests && queue.length > 0) {
      const wanted = queue.splice(0, batch).filter(({ signal, reject }) => {
        if (signal.aborted) reject(signal.reason);
        return !signal.aborted;
      });
      if (wanted.length > 0) void post(wanted);
    }
  };
  return (data, signal) =>
    new Promise((resolve, reject) => {
      queue.push({ data, signal, resolve, reject });
      if (scheduled) return;
      scheduled = true;
      setImmediate(send);
    });
}
