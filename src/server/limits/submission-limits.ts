import { Bucket } from '../../../gen/attestation/options/v1/options_pb.js';
import type { Lookup } from '../core/lookup.js';
import type { Principal } from '../core/principal.js';
import { type RateState, spentCeiling, submissionWindowStates, type WindowUse } from '../core/rate-window.js';
import type { Pool } from '../database/connect.js';
import { findWindowUse } from './rate-counters.js';

/**
 * The keys' use of the submissions bucket as this process last saw it. Rejects requests over the limit before their body
 * is read.
 */
type SubmissionLimits = {
  /** Records what a write has counted of the key and its project. Returns the key's windows after it. */
  record(principal: Principal, use: WindowUse, projectUse?: WindowUse): readonly RateState[];
  /** The spent window of the key's project as last seen; undefined if none is known to be spent. */
  findSpentCeiling(principal: Principal): RateState | undefined;
  /** The windows of a key as last seen; `get` reads them from the database. */
  windows: Lookup<Principal, readonly RateState[]>;
};

/** The use of a project's windows, and which of them was spent at a second. */
type SeenProject = { use: WindowUse; principal: Principal; second: number; spent: RateState | undefined };

/** The windows of a principal by their last use, at a time of theirs and now. */
type Seen = {
  principal: Principal;
  use: WindowUse;
  written: readonly RateState[] | undefined;
  peeked: { second: number; states: readonly RateState[] } | undefined;
};

const KEYS_CACHED = 10_000;
const NO_USE: WindowUse = { second: 0, nSecond: 0, nHour: 0, nDay: 0 };

/** The write counts exactly. Writes of other processes show here after this process's next write with the same key. */
export function createSubmissionLimits(pool: Pool, nowMs: () => number): SubmissionLimits {
  const seen = new Map<string, Seen>();
  /** Rows of one write share their use, so that its states are made once. */
  const recall = (principal: Principal, use: WindowUse): Seen => {
    const { id: apiKeyId } = principal;
    const known = seen.get(apiKeyId);
    if (known?.use === use && known.principal === principal) return known;
    if (seen.size >= KEYS_CACHED && known === undefined) seen.clear();
    const made: Seen = { principal, use, written: undefined, peeked: undefined };
    seen.set(apiKeyId, made);
    return made;
  };
  const seenProjects = new Map<string, SeenProject>();
  const recordProject = (principal: Principal, use: WindowUse): void => {
    const { projectId } = principal;
    if (seenProjects.get(projectId)?.use === use) return;
    if (seenProjects.size >= KEYS_CACHED && !seenProjects.has(projectId)) seenProjects.clear();
    seenProjects.set(projectId, { use, principal, second: -1, spent: undefined });
  };
  const findSpentCeiling = (principal: Principal): RateState | undefined => {
    const project = seenProjects.get(principal.projectId);
    if (project === undefined) return undefined;
    const second = Math.floor(nowMs() / 1000);
    if (project.second !== second || project.principal !== principal) {
      project.spent = spentCeiling(principal, project.use, second);
      project.principal = principal;
      project.second = second;
    }
    return project.spent;
  };
  const peek = (principal: Principal, use: WindowUse): readonly RateState[] => {
    const known = recall(principal, use);
    const second = Math.floor(nowMs() / 1000);
    if (known.peeked?.second !== second)
      known.peeked = { second, states: submissionWindowStates(principal, use, second) };
    return known.peeked.states;
  };
  return {
    findSpentCeiling,
    record: (principal, use, projectUse) => {
      if (projectUse !== undefined) recordProject(principal, projectUse);
      const known = recall(principal, use);
      known.written ??= submissionWindowStates(principal, use, use.second);
      return known.written;
    },
    windows: {
      peek: (principal) => {
        const known = seen.get(principal.id);
        return known && peek(principal, known.use);
      },
      get: async (principal) => {
        const use = (await findWindowUse(pool, principal.id, Bucket.SUBMISSIONS)) ?? NO_USE;
        // A write may have been recorded during the query.
        return peek(principal, seen.get(principal.id)?.use ?? use);
      },
    },
  };
}
