/** Fetches the bundles of many submissions into a folder, by calls whose number does not grow while it waits. */
import type { Client } from '../../client/client.js';
import { AttestationError } from '../../client/error.js';
import { refuseGivenUp } from '../../client/wait.js';
import { createMemo } from '../../proof/verify/memo.js';
import type { BundleFolder } from '../submit/bundle-folder.js';
import { callUntil } from '../submit/grace.js';
import { watchLanding } from '../submit/landing.js';
import { createLimit } from '../submit/limit.js';

/** The bundle of a submission is in its file, perhaps from before; or why it is not. */
export type Fetched = { readonly id: string } & (
  | { readonly file: string; readonly isKept: boolean; readonly error?: never }
  | { readonly error: unknown }
);

type FetchOptions = {
  readonly client: Client;
  readonly folder: BundleFolder;
  /** Whether to wait until all are witnessed, for at most `timeoutMs`; without it a bundle may be that of a partial batch. */
  readonly wait: boolean;
  readonly timeoutMs: number;
  /** Calls at a time. */
  readonly concurrency: number;
  /** Begins nothing more, and ends calls within half a second: what has no bundle by then is left out. */
  readonly stop: AbortSignal;
  readonly now: () => number;
  readonly onFetched: (fetched: Fetched) => void;
};

/** In characters of the ids of batches: one call for each. */
const MAX_BATCHES = 64 * 1024;

/** Fetches the bundles with these ids. Errors are those of single bundles: it throws nothing. */
export async function fetchBundles(ids: readonly string[], options: FetchOptions): Promise<void> {
  const { client, folder, wait, stop, onFetched } = options;
  const { attestations } = client;
  const land = watchLanding(client, { ...options, signal: stop, onPoll: () => {} });
  const limit = createLimit(options.concurrency);
  const call = <T>(run: (signal: AbortSignal) => Promise<T>) => callUntil(stop, run);
  const read = (id: string) => call((signal) => attestations.get(id, { signal }));
  const download = (id: string) =>
    call((signal) => attestations.downloadBundle({ id, format: 'bundle.json' }, { signal }));
  const waitFor = async (id: string) => {
    const submission = await limit(() => read(id));
    if (submission !== undefined) await land(submission);
  };
  const batches = createMemo<Awaited<ReturnType<typeof read>>>(MAX_BATCHES);
  const assertWitnessed = async (id: string, data: Uint8Array) => {
    const { batch } = JSON.parse(Buffer.from(data).toString()) as { batch: { id: string } };
    // The error of one of them is not that of the others: one may be archived meanwhile.
    const seen = await batches(batch.id, () => read(id)).catch(() => read(id));
    if (seen !== undefined) refuseGivenUp({ ...seen, id });
  };
  const fetchOne = async (id: string): Promise<Fetched | undefined> => {
    const file = folder.pathOf(id);
    if (stop.aborted) return undefined;
    if (await folder.has(id, id)) return { id, file, isKept: true };
    const found = await download(id);
    if (found === undefined) return undefined;
    if (wait) await assertWitnessed(id, found.data);
    await folder.write(id, found.data);
    return { id, file, isKept: false };
  };
  const finish = async (id: string, isLast: boolean): Promise<Fetched | undefined> => {
    try {
      return await limit(() => fetchOne(id));
    } catch (error) {
      const mayWait = wait && !isLast && error instanceof AttestationError && error.code === NOT_READY;
      if (!mayWait || !error.retryable) return { id, error };
    }
    try {
      await waitFor(id);
    } catch (error) {
      return { id, error };
    }
    return finish(id, true);
  };
  // Batches settle in the order of the log: once the newest one has, the others are there.
  const newest = [...ids].sort().at(-1);
  if (wait && newest !== undefined && !(await folder.has(newest, newest).catch(() => true))) {
    await waitFor(newest).catch(() => {});
  }
  const all = ids.map(async (id) => {
    const fetched = await finish(id, false);
    if (fetched !== undefined) onFetched(fetched);
  });
  await Promise.all(all);
}

const NOT_READY = 'bundle.not_ready';
