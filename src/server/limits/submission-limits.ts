import { Bucket } from '../../../gen/attestation/options/v1/options_pb.js';
import type { Principal } from '../core/principal.js';
import type { RateState } from '../core/rate-window.js';
import type { Pool } from '../store/database/connect.js';
import { findUse } from '../store/projects/rates.js';
import type { WindowUse } from '../store/submissions/accept.js';
import { submissionWindowStates } from './rate-windows.js';

/** What this process last saw of its keys' use of the submissions bucket, so that a refusal need not read the body. */
export type SubmissionLimits = {
  /** Told what a write has counted. */
  record(principal: Principal, use: WindowUse): void;
  /** The windows of a key as last seen; the database is asked about a key that has not written here. */
  peek(principal: Principal, nowMs: number): Promise<readonly RateState[]>;
};

const KEYS_CACHED = 10_000;
const NO_USE: WindowUse = { second: 0, nSecond: 0, nHour: 0, nDay: 0 };

/** The exact count is made inside the write; another process's writes show here only with this one's next. */
export function createSubmissionLimits(pool: Pool): SubmissionLimits {
  const seen = new Map<string, WindowUse>();
  const record = (apiKeyId: string, use: WindowUse) => {
    if (seen.size >= KEYS_CACHED && !seen.has(apiKeyId)) seen.clear();
    seen.set(apiKeyId, use);
  };
  const find = async ({ apiKeyId }: Principal): Promise<WindowUse> => {
    const use = (await findUse(pool, apiKeyId, Bucket.SUBMISSIONS)) ?? NO_USE;
    // A write may have been counted meanwhile.
    if (!seen.has(apiKeyId)) record(apiKeyId, use);
    return use;
  };
  return {
    record: ({ apiKeyId }, use) => record(apiKeyId, use),
    peek: async (principal, nowMs) => {
      const use = seen.get(principal.apiKeyId) ?? (await find(principal));
      return submissionWindowStates(principal, use, Math.floor(nowMs / 1000));
    },
  };
}
