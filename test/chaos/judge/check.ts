/**
 * The judge of a campaign: holds what was recorded against what is there. Pure; uses no code of the service, only
 * RFC 6962, C2SP's checkpoints and tiles, and the record.
 */

import type { CampaignRecord } from '../record.js';
import { checkEvents } from './check-events.js';
import { checkLog } from './check-log.js';
import { checkSubmissions } from './check-submissions.js';
import { createTree, hashLeaf, type Tree } from './merkle.js';
import type { Observed, SeenLog } from './observe.js';

/** Everything that is judged. */
export type Evidence = {
  record: CampaignRecord;
  observed: Observed;
  /** The environment of each owner's key. */
  owners: Record<string, string>;
};

/** One thing that does not hold. `check` is the same for all of its kind. */
export type Problem = { check: string; problem: string };

/** What was looked at, by kind, and all that does not hold. */
export type Verdict = { looked: Record<string, number>; problems: Problem[] };

/** A log with its leaf hashes and its tree as recomputed from its entries. */
export type HashedLog = SeenLog & { leaves: Buffer[]; tree: Tree };

/** Counts what is looked at and collects what is wrong. */
export type Findings = {
  looked(what: string, count?: number): void;
  wrong(check: string, problem: string): void;
};

/** Makes every check, whatever the others find. */
export function check(evidence: Evidence): Verdict {
  const verdict: Verdict = { looked: {}, problems: [] };
  const findings: Findings = {
    looked: (what, count = 1) => {
      verdict.looked[what] = (verdict.looked[what] ?? 0) + count;
    },
    wrong: (name, problem) => void verdict.problems.push({ check: name, problem }),
  };
  const logs = evidence.observed.logs.map((log): HashedLog => {
    const leaves = log.entries.map(hashLeaf);
    return { ...log, leaves, tree: createTree(leaves) };
  });
  for (const log of logs) checkLog(findings, evidence, log);
  checkSubmissions(findings, evidence, logs);
  checkEvents(findings, evidence);
  for (const { problem } of evidence.record.wrong) findings.wrong('seen while it went on', problem);
  return verdict;
}
