/** A witness that stamps signatures, and the requests to it. */
import { setTimeout as delay } from 'node:timers/promises';
import { limitConcurrency } from '../../core/limit-concurrency.js';
import type { OutageLog } from '../../core/outage-log.js';
import { type LeafPlace, type NewStamp, stampKey } from './stored-stamps.js';

/** An authority that stamps signatures. */
export type StampWitness = {
  readonly name: string;
  /** Proto Environment numbers. */
  readonly environments: readonly number[];
  /** Requests a stamp of a signature and verifies it; rejects with one line for the operator. */
  readonly ask: (
    signature: Uint8Array,
    signal: AbortSignal,
  ) => Promise<Pick<NewStamp, 'response' | 'genTime'>>;
  /** The most requests in flight of this process, and the most that it starts in a second. */
  readonly limits: { readonly inFlight: number; readonly perSecond: number };
};

/** A signature to stamp: that of a leaf, in DER. */
export type StampedLeaf = LeafPlace & { readonly signature: Uint8Array };

type RequestDeps = {
  /** Stores a stamp. Resolves to the one that is stored, in base64; to undefined if none is. */
  store: (stamp: NewStamp) => Promise<string | undefined>;
  outageLog: OutageLog;
  /** Monotonic milliseconds. */
  clock: () => number;
  closing: AbortSignal;
};

/** Requests to one witness. */
export type StampRequests = Pick<StampWitness, 'name' | 'environments'> & {
  /**
   * Requests the stamp of a leaf and stores it; concurrent calls for a leaf share a request. Resolves to the stored stamp in
   * base64, or to undefined if there is none: the witness failed, rests after a failure, or the request had to wait
   * until `untilMs`. The request goes on when the caller has stopped waiting.
   */
  request(leaf: StampedLeaf, untilMs: number): Promise<string | undefined>;
  /** When the witness is asked again, monotonic milliseconds. */
  restUntilMs(): number;
};

const MAX_QUEUED = 1_000;
const FIRST_REST_MS = 1_000;
const MAX_REST_MS = 60_000;
const NOT_TRUSTED = 'the trust roots have no authority of this name at the time of the stamp';

/** Creates the requests to a witness. After a failure it rests, for a second and then twice as long each time, up to a minute. */
export function createStampRequests(deps: RequestDeps, witness: StampWitness): StampRequests {
  const { clock, store, outageLog, closing } = deps;
  const { name, environments, limits } = witness;
  const inTurn = limitConcurrency(
    { maxConcurrent: limits.inFlight, maxQueued: MAX_QUEUED },
    () => new Error('busy'),
  );
  // A slot that is held this long bounds the rate: all slots together start no more in a second.
  const slotMs = (limits.inFlight / limits.perSecond) * 1_000;
  const pending = new Map<string, Promise<string | undefined>>();
  let restUntilMs = 0;
  let restMs = 0;
  const fail = (error: unknown) => {
    if (closing.aborted) return;
    outageLog.failed(
      { witness: name, reason: reasonOf(error) },
      'no time stamp of a signature; trying again',
    );
    if (clock() < restUntilMs) return;
    restMs = Math.min(MAX_REST_MS, Math.max(FIRST_REST_MS, 2 * restMs));
    restUntilMs = clock() + restMs;
  };
  const attempt = async ({ logId, logIndex, signature }: StampedLeaf): Promise<string | undefined> => {
    try {
      const stamp = await witness.ask(signature, closing);
      const stored = await store({ logId, logIndex, witness: name, ...stamp });
      if (stored === undefined) throw new Error(NOT_TRUSTED);
      restMs = 0;
      outageLog.recovered({ witness: name }, 'signatures are stamped again');
      return stored;
    } catch (error) {
      fail(error);
      return undefined;
    }
  };
  const takeTurn = (leaf: StampedLeaf, untilMs: number) =>
    new Promise<string | undefined>((resolve) => {
      const work = async () => {
        const startMs = clock();
        if (startMs >= untilMs || startMs < restUntilMs || closing.aborted) return resolve(undefined);
        resolve(await attempt(leaf));
        const leftMs = slotMs - (clock() - startMs);
        if (leftMs > 0) await delay(leftMs);
      };
      inTurn(work).catch(() => resolve(undefined));
    });
  return {
    name,
    environments,
    restUntilMs: () => restUntilMs,
    async request(leaf, untilMs) {
      const key = stampKey({ ...leaf, witness: name });
      const known = pending.get(key);
      if (known !== undefined) return known;
      if (clock() < restUntilMs) return undefined;
      const made = takeTurn(leaf, untilMs).finally(() => pending.delete(key));
      pending.set(key, made);
      return made;
    },
  };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
