import { Bucket } from '../../gen/attestation/options/v1/options_pb.js';
import type { Principal } from '../principal.js';
import { type RateState, rateLimitExceeded } from '../rate.js';
import type { Soon } from '../soon.js';
import type { Pool } from '../store/connect.js';
import { type Grant, takeTokens } from '../store/rates.js';
import { readState } from './rate-windows.js';

/** Counts reads of API keys. */
export type ReadLimits = {
  /** Counts one read; throws the error of a spent window. */
  take(principal: Principal): Soon<RateState>;
};

/**
 * Tokens of one key leased from the database under its `limit` then; they die with their window, in which `spent` were
 * used here so far.
 */
type Lease = { grant: Grant; limit: number; left: number; spent: number; untilMs: number };

const BLOCKS_PER_WINDOW = 20;
const KEYS_REMEMBERED = 10_000;

/**
 * Leases tokens in blocks of up to a twentieth of the limit, so most reads of a busy key cost no query. Over all
 * processes never more than the limit is granted; what a process leased and did not use goes unused, but counts as
 * used: so blocks begin small, and a key that reads little is counted as it reads. A lease ends no later than its
 * window does by the database's clock, as seen from when it was asked for.
 *
 * @param monotonicMs a clock that never steps, for instance `performance.now`
 */
export function createReadLimits(pool: Pool, monotonicMs: () => number): ReadLimits {
  const leases = new Map<string, Lease>();
  const asking = new Map<string, Promise<Lease>>();

  const lease = async (principal: Principal): Promise<Lease> => {
    const askedMs = monotonicMs();
    const { apiKeyId, readWindow } = principal;
    const held = leases.get(apiKeyId);
    const wanted = blockSize(held, readWindow.limit, askedMs);
    const grant = await takeTokens(pool, {
      apiKeyId,
      bucket: Bucket.READS,
      wanted,
      perSecond: readWindow.limit,
    });
    const spent = held?.grant.second === grant.second ? held.spent : 0;
    const { limit } = readWindow;
    const made = { grant, limit, left: grant.granted, spent, untilMs: askedMs + grant.leftMs };
    if (leases.size >= KEYS_REMEMBERED) leases.clear();
    leases.set(apiKeyId, made);
    return made;
  };
  const leaseOnce = (principal: Principal): Promise<Lease> => {
    const under = asking.get(principal.apiKeyId);
    if (under !== undefined) return under;
    const started = lease(principal).finally(() => asking.delete(principal.apiKeyId));
    asking.set(principal.apiKeyId, started);
    return started;
  };

  /** One read of the lease that this process holds; undefined when a new one is to be asked for. */
  const takeHeld = (principal: Principal): RateState | undefined => {
    const held = leases.get(principal.apiKeyId);
    if (held?.limit !== principal.readWindow.limit || monotonicMs() >= held.untilMs) return undefined;
    if (held.left > 0) {
      held.left--;
      held.spent++;
      return stateAfter(principal, held);
    }
    if (held.grant.granted > 0) return undefined;
    throw rateLimitExceeded(stateAfter(principal, held), held.grant.second * 1000);
  };
  const takeLeased = async (principal: Principal): Promise<RateState> => {
    await leaseOnce(principal);
    return takeHeld(principal) ?? takeLeased(principal);
  };
  return { take: (principal) => takeHeld(principal) ?? takeLeased(principal) };
}

/** In a new window a part of what the last one took, then twice as much each time, less near the limit. */
function blockSize(held: Lease | undefined, limit: number, nowMs: number): number {
  const most = Math.ceil(limit / BLOCKS_PER_WINDOW);
  if (held === undefined) return 1;
  if (nowMs >= held.untilMs) return Math.max(1, Math.min(most, Math.ceil(held.spent / 4)));
  const remaining = limit - held.grant.nSecond;
  return Math.max(1, Math.min(most, 2 * held.grant.granted, Math.floor(remaining / 4)));
}

/** What is left for this process to see: the window's rest and what it holds of its own lease. */
function stateAfter(principal: Principal, { grant, left }: Lease): RateState {
  const state = readState(principal, grant, grant.second);
  return { ...state, remaining: state.remaining + left };
}
