/** Stamps the signatures of submissions when their bundles are read. */
import type { SignatureStamps } from '../../../proof/bundle/bundle.js';
import type { Logger } from '../../core/logger.js';
import { createOutageLog } from '../../core/outage-log.js';
import { createBatchLoader } from '../../database/batch-loader.js';
import type { Pool } from '../../database/connect.js';
import { createStampRequests, type StampedLeaf, type StampWitness } from './stamp-witness.js';
import { type NewStamp, parseStamps, stampKey, storeStamps } from './stored-stamps.js';

/** The stamps of a leaf, and when to ask for a missing one again. */
export type FoundStamps = Required<SignatureStamps> & { readonly retryAfterMs: number };

/** A leaf with its stored stamps, see {@link parseStamps}. */
export type StampableLeaf = StampedLeaf & { readonly stamps: string };

/** Stamps signatures. */
export type SignatureStamper = {
  /** Whether an authority that stamps in this environment has not stamped the leaf. */
  isIncomplete(leaf: Pick<StampableLeaf, 'stamps'>, environment: number): boolean;
  /**
   * Finds the stamps of a leaf, and requests those that it lacks for at most `waitMs` milliseconds. Never rejects: a bundle
   * does without a stamp.
   */
  complete(leaf: StampableLeaf, environment: number, waitMs: number): Promise<FoundStamps>;
  /** Ends requests in flight. */
  close(): void;
};

type StamperDeps = {
  pool: Pool;
  log: Pick<Logger, 'warn' | 'info'>;
  witnesses: readonly StampWitness[];
  /** Monotonic milliseconds. */
  clock?: () => number;
};

const STORING = { maxKeys: 200, maxInFlight: 2 };

/**
 * A stamper of these witnesses. A stamp is made once: it is stored, with which it is made, before it is in any bundle, and
 * what is stored is what every process serves. A process that ends before that has made none; one that ends after it
 * leaves the stamp to the next read.
 */
export function createSignatureStamper({
  pool,
  log,
  witnesses,
  clock = () => performance.now(),
}: StamperDeps): SignatureStamper {
  const closing = new AbortController();
  const store = createStampWriter(pool);
  const requests = witnesses.map((witness) =>
    createStampRequests(
      { store, outageLog: createOutageLog(log, clock), clock, closing: closing.signal },
      witness,
    ),
  );
  const missing = (stamps: string, environment: number) => {
    const stored = parseStamps(stamps);
    return requests.filter(
      ({ name, environments }) =>
        environments.includes(environment) && !stored.some(({ witness }) => witness === name),
    );
  };
  return {
    isIncomplete: ({ stamps }, environment) => missing(stamps, environment).length > 0,
    async complete({ stamps, ...leaf }, environment, waitMs) {
      const stored = parseStamps(stamps);
      const wanted = missing(stamps, environment);
      const untilMs = clock() + waitMs;
      const made = await withinMs(
        waitMs,
        wanted.map(async (one) => ({ witness: one.name, response: await one.request(leaf, untilMs) })),
      );
      const all = [
        ...stored,
        ...made.flatMap(({ witness, response }) => (response ? { witness, response } : [])),
      ];
      const restMs = Math.max(0, ...wanted.map(({ restUntilMs }) => restUntilMs() - clock()));
      return {
        stamps: all.sort((a, b) => (a.witness < b.witness ? -1 : 1)).map(({ response }) => response),
        isStampPending: all.length < stored.length + wanted.length,
        retryAfterMs: restMs,
      };
    },
    close: () => closing.abort(new Error('the process is stopping')),
  };
}

/** The values of the promises that resolve within so many milliseconds. */
async function withinMs<T>(ms: number, promises: readonly Promise<T>[]): Promise<T[]> {
  if (promises.length === 0) return [];
  const done: T[] = [];
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  const all = Promise.all(promises.map(async (promise) => void done.push(await promise)));
  await Promise.race([all, late]);
  clearTimeout(timer);
  return [...done];
}

/** Creates a writer of stamps; concurrent ones share a statement. Resolves to what is stored, undefined if nothing is. */
function createStampWriter(pool: Pool): (stamp: NewStamp) => Promise<string | undefined> {
  const waiting = new Map<string, NewStamp>();
  const store = createBatchLoader(async (keys) => {
    const stamps = keys.flatMap((key) => waiting.get(key) ?? []);
    for (const key of keys) waiting.delete(key);
    return storeStamps(pool, stamps);
  }, STORING);
  return (stamp) => {
    const key = stampKey(stamp);
    waiting.set(key, stamp);
    return store(key);
  };
}
