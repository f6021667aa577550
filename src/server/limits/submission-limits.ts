import { Bucket } from '../../../gen/attestation/options/v1/options_pb.js';
import type { Principal } from '../core/principal.js';
import type { RateState } from '../core/rate-window.js';
import type { Pool } from '../store/database/connect.js';
import { findWindowUse } from '../store/projects/rate-counters.js';
import type { WindowUse } from '../store/submissions/sequence-submissions.js';
import { submissionWindowStates } from './rate-windows.js';

/**
 * The keys' use of the submissions bucket as this process last saw it. Rejects requests over the limit before their body
 * is read.
 */
type SubmissionLimits = {
  /** Records what a write has counted. */
  record(principal: Principal, use: WindowUse): void;
  /** The windows of a key as last seen. Reads them from the database if the key has not written in this process. */
  peek(principal: Principal, nowMs: number): Promise<readonly RateState[]>;
};

const KEYS_CACHED = 10_000;
const NO_USE: WindowUse = { second: 0, nSecond: 0, nHour: 0, nDay: 0 };

/** The write counts exactly. Writes of other processes show here after this process's next write with the same key. */
export function createSubmissionLimits(pool: Pool): SubmissionLimits {
  const seen = new Map<string, WindowUse>();
  const record = (apiKeyId: string, use: WindowUse) => {
    if (seen.size >= KEYS_CACHED && !seen.has(apiKeyId)) seen.clear();
    seen.set(apiKeyId, use);
  };
  const find = async ({ id: apiKeyId }: Principal): Promise<WindowUse> => {
    const use = (await findWindowUse(pool, apiKeyId, Bucket.SUBMISSIONS)) ?? NO_USE;
    // A write may have been recorded during the query.
    if (!seen.has(apiKeyId)) record(apiKeyId, use);
    return use;
  };
  return {
    record: ({ id: apiKeyId }, use) => record(apiKeyId, use),
    peek: async (principal, nowMs) => {
      const use = seen.get(principal.id) ?? (await find(principal));
      return submissionWindowStates(principal, use, Math.floor(nowMs / 1000));
    },
  };
}
