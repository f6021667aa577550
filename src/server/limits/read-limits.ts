import type { Principal } from '../core/principal.js';
import { type RateState, rateLimitExceeded, readWindowState } from '../core/rate-window.js';
import type { Pool } from '../database/connect.js';
import { DISK_FULL, errorCode } from '../database/database-errors.js';
import { type Grant, type Reader, takeReadTokens } from './rate-counters.js';

/** Counts the reads of API keys. */
type ReadLimits = {
  /** Counts a call as `count` reads, at most a whole window. Throws `rate_limit.exceeded` if the window is exhausted. */
  take(principal: Principal, count: number): Promise<RateState>;
  /** Counts `count` reads that have already happened, at most a whole window, without waiting. It may overdraw the window. */
  charge(principal: Principal, count: number): void;
  /** The overdrawn window. Returns undefined if the key has not overdrawn its window. */
  findOverdrawn(principal: Principal): RateState | undefined;
};

/**
 * Tokens of one key, leased from the database. They expire with their window, and are void if the key's limit is no
 * longer `limit`. `spent`: tokens used in this window by this process. `isFull`: the window, of the key or of its project,
 * has no more to lease.
 */
type Lease = {
  grant: Grant;
  limit: number;
  left: number;
  spent: number;
  isFull: boolean;
  isOverdrawn: boolean;
  untilMs: number;
};

const BLOCKS_PER_WINDOW = 20;
const MAX_LEASES = 10_000;

/**
 * `monotonicMs`: monotonic milliseconds. `isCountedHere`: whether the database cannot count now; then this process counts its
 * own reads. So it does while the database has no space to count them.
 */
type Options = { monotonicMs?: () => number; isCountedHere?: () => boolean };

/**
 * Leases tokens in blocks of up to a twentieth of the limit, so that most reads of a busy key need no query. The
 * database never grants more than the limit to all processes together. Leased tokens that a process does not use count
 * as used, so blocks start small: a key with few reads is counted exactly. A lease expires no later than its window by
 * the database's clock, measured from when the request for it was sent.
 */
export function createReadLimits(pool: Pool, options: Options = {}): ReadLimits {
  const { findHeld, renew } = createLeaseCache(pool, options);
  /** Takes tokens from the current lease. Returns undefined if a new lease is needed. */
  const takeHeld = (principal: Principal, count: number): RateState | undefined => {
    const held = findHeld(principal);
    if (held === undefined) return undefined;
    const state = takeFrom(held, principal, count);
    if (state !== undefined || !held.isFull) return state;
    const spent = spentCeiling(principal, held) ?? stateAfter(principal, held);
    throw rateLimitExceeded(spent, held.grant.second * 1000);
  };
  const takeLeased = async (principal: Principal, count: number): Promise<RateState> => {
    const lease = await renew(principal, count);
    // A lease whose window ends before the database's answer arrives was still made for this call.
    return takeFrom(lease, principal, count) ?? takeHeld(principal, count) ?? takeLeased(principal, count);
  };
  const take: ReadLimits['take'] = async (principal, wanted) => {
    const count = boundByLimit(principal, wanted);
    return takeHeld(principal, count) ?? takeLeased(principal, count);
  };
  const recordOverdrawn = (principal: Principal) => {
    const held = findHeld(principal);
    if (held?.isFull) held.isOverdrawn = true;
  };
  return {
    take,
    charge: createCharging({
      payHeld(principal, count) {
        try {
          return takeHeld(principal, boundByLimit(principal, count)) !== undefined;
        } catch {
          recordOverdrawn(principal);
          return true;
        }
      },
      async payLeased(principal, count) {
        try {
          await take(principal, count);
        } catch {
          // The call is over: if the database is unavailable, the next call reports it.
          recordOverdrawn(principal);
        }
      },
    }),
    findOverdrawn(principal) {
      const held = findHeld(principal);
      if (!held?.isOverdrawn) return undefined;
      return { ...(spentCeiling(principal, held) ?? stateAfter(principal, held)), remaining: 0 };
    },
  };
}

/** Takes tokens from a lease. Returns undefined if it has too few, or was for another limit. */
function takeFrom(lease: Lease, principal: Principal, count: number): RateState | undefined {
  if (lease.limit !== principal.readWindow.limit || lease.left < count) return undefined;
  lease.left -= count;
  lease.spent += count;
  return stateAfter(principal, lease);
}

/** Bounds a number of reads by the windows of the key and its project, and by 1 from below. */
function boundByLimit({ readWindow, ceiling }: Principal, count: number): number {
  return Math.max(1, Math.min(count, readWindow.limit, ceiling?.readWindow.limit ?? count));
}

/** How debts are paid: `payHeld` out of the lease that is held, if it has tokens or none can be leased. */
type Payment = {
  payHeld: (principal: Principal, count: number) => boolean;
  payLeased: (principal: Principal, count: number) => Promise<void>;
};

/**
 * Debts incurred while a lease is being requested are paid together afterwards. Paid one by one out of small leases,
 * they would be paid more slowly than they are incurred, and no key would ever be overdrawn.
 */
function createCharging({ payHeld, payLeased }: Payment): ReadLimits['charge'] {
  const owed = new Map<string, number>();
  const payAll = async (principal: Principal, first: number): Promise<void> => {
    const { id: apiKeyId } = principal;
    for (let count = first; count > 0; count = owed.get(apiKeyId) ?? 0) {
      owed.set(apiKeyId, 0);
      await payLeased(principal, count);
    }
    owed.delete(apiKeyId);
  };
  return (principal, count) => {
    const waiting = owed.get(principal.id);
    if (waiting !== undefined) owed.set(principal.id, waiting + count);
    else if (!payHeld(principal, count)) void payAll(principal, count);
  };
}

type LeaseCache = {
  /** The key's lease. Returns undefined if it has expired or was for another limit. */
  findHeld: (principal: Principal) => Lease | undefined;
  /** Leases at least `count` tokens if the window has them. Concurrent callers share one query. */
  renew: (principal: Principal, count: number) => Promise<Lease>;
};

function createLeaseCache(
  pool: Pool,
  { monotonicMs = () => performance.now(), isCountedHere = () => false }: Options,
): LeaseCache {
  const leases = new Map<string, Lease>();
  const asking = new Map<string, Promise<Lease>>();
  const findHeld: LeaseCache['findHeld'] = ({ id: apiKeyId, readWindow }) => {
    const held = leases.get(apiKeyId);
    return held?.limit === readWindow.limit && monotonicMs() < held.untilMs ? held : undefined;
  };
  const ask = async (principal: Principal, count: number): Promise<Lease> => {
    const askedMs = monotonicMs();
    const { id: apiKeyId, projectId, readWindow, ceiling } = principal;
    const { limit } = readWindow;
    const projectPerSecond = ceiling?.readWindow.limit;
    const missing = count - (findHeld(principal)?.left ?? 0);
    const wanted = Math.max(missing, blockSize(leases.get(apiKeyId), principal, askedMs));
    const reader = { apiKeyId, projectId, perSecond: limit, projectPerSecond };
    const countHere = () => takeHere(leases.get(apiKeyId)?.grant, wanted, reader);
    const grant = isCountedHere()
      ? countHere()
      : await takeReadTokens(pool, wanted, reader).catch((error: unknown) => {
          if (!isCountedHere() && errorCode(error) !== DISK_FULL) throw error;
          return countHere();
        });
    const latest = leases.get(apiKeyId);
    const before = latest?.grant.second === grant.second ? latest : undefined;
    if (leases.size >= MAX_LEASES) leases.clear();
    const lease: Lease = {
      grant,
      limit,
      // Tokens leased under another limit are void.
      left: grant.granted + (before?.limit === limit ? before.left : 0),
      spent: before?.spent ?? 0,
      isFull: grant.granted < wanted,
      isOverdrawn: before?.isOverdrawn ?? false,
      untilMs: askedMs + grant.leftMs,
    };
    leases.set(apiKeyId, lease);
    return lease;
  };
  return {
    findHeld,
    renew(principal, count) {
      const { id: apiKeyId } = principal;
      const started = asking.get(apiKeyId) ?? ask(principal, count).finally(() => asking.delete(apiKeyId));
      asking.set(apiKeyId, started);
      return started;
    },
  };
}

/** Takes up to `wanted` reads of the second that this process has counted in `latest`. The project's limit is one of the key. */
function takeHere(latest: Grant | undefined, wanted: number, reader: Reader): Grant {
  const nowMs = Date.now();
  const second = Math.floor(nowMs / 1000);
  const spent = latest?.second === second ? latest.nSecond : 0;
  const limit = Math.min(reader.perSecond, reader.projectPerSecond ?? reader.perSecond);
  const granted = Math.max(0, Math.min(wanted, limit - spent));
  const leftMs = (second + 1) * 1000 - nowMs;
  return { granted, second, nSecond: spent + granted, nHour: 0, nDay: 0, leftMs, projectSecond: null };
}

/** Tokens to lease next: a quarter of the last window's use to begin with, then doubled each time, fewer near the limit. */
function blockSize(held: Lease | undefined, { readWindow, ceiling }: Principal, nowMs: number): number {
  const { limit } = readWindow;
  const most = Math.ceil(limit / BLOCKS_PER_WINDOW);
  if (held === undefined) return 1;
  if (nowMs >= held.untilMs) return Math.max(1, Math.min(most, Math.ceil(held.spent / 4)));
  const { nSecond, projectSecond } = held.grant;
  const ofProject = (ceiling?.readWindow.limit ?? limit) - (projectSecond ?? 0);
  const remaining = Math.min(limit - nSecond, ofProject);
  return Math.max(1, Math.min(most, 2 * held.grant.granted, Math.floor(remaining / 4)));
}

/** The window of the project, if it is that one which has no more to lease. */
function spentCeiling({ ceiling }: Principal, { grant, limit, left }: Lease): RateState | undefined {
  const { projectSecond, second } = grant;
  if (ceiling === undefined || projectSecond === null || grant.nSecond >= limit) return undefined;
  if (projectSecond < ceiling.readWindow.limit) return undefined;
  const use = { second, nSecond: projectSecond, nHour: 0, nDay: 0 };
  const state = readWindowState(ceiling, use, second);
  return { ...state, remaining: state.remaining + left, ofProject: true };
}

/** The window's state as this process sees it: the calls that remain in the database and in the lease. */
function stateAfter(principal: Principal, { grant, left }: Lease): RateState {
  const state = readWindowState(principal, grant, grant.second);
  return { ...state, remaining: state.remaining + left };
}
