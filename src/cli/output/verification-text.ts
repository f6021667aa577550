/** A verification as text and as JSON. */

import { headJson, notBeforeText } from '../../proof/set/head.js';
import type { Check, CheckStatus, Step } from '../../proof/verify/report.js';
import type { Verification } from '../../proof/verify/verify.js';

const STATUS_TEXT: Readonly<Record<CheckStatus, string>> = {
  passed: 'ok',
  failed: 'FAILED',
  not_checked: 'not checked',
};
const WORD_WIDTH = 11;
const NAME_WIDTH = 10;

/** Lines of text: each step with its unchecked parts, the source of trust, and the summary. */
export function formatVerification(verification: Verification, trustOrigin: string): string[] {
  const { steps, summary, set, verdict } = verification;
  const notBefore = verdict === 'verified' ? set?.head.notBefore : undefined;
  return [
    ...formatSteps(steps),
    '',
    `Trusting ${trustOrigin}`,
    '',
    summary,
    ...(notBefore === undefined ? [] : [notBeforeText(notBefore)]),
  ];
}

/** Lines of text: each step, with those of its checks whose status differs. */
function formatSteps(steps: readonly Step<string>[]): string[] {
  return steps.flatMap(formatStep);
}

function formatStep({ name, status, message, checks }: Step<string>): string[] {
  const indent = ' '.repeat(WORD_WIDTH + NAME_WIDTH + 4);
  const others = checks
    .filter((check) => check.status !== status)
    .map((check) => `${indent}${formatCheck(check)}`);
  return [`${STATUS_TEXT[status].padEnd(WORD_WIDTH)}  ${name.padEnd(NAME_WIDTH)}  ${message}`, ...others];
}

function formatCheck({ status, message }: Check): string {
  return `${STATUS_TEXT[status]}: ${message}`;
}

/** The verification for --json, in snake_case. Omits whatever is not proven. */
export function verificationJson(verification: Verification, trustOrigin: string): object {
  const { verdict, summary, steps, witnesses, unproven } = verification;
  const { statement, metadata, set, existedBy } = verdict === 'verified' ? verification : {};
  return {
    verdict,
    summary,
    trust_roots: trustOrigin,
    existed_by: existedBy,
    statement: statement && {
      submission_id: statement.submissionId,
      project: statement.project,
      submitted_at: statement.submittedAt,
      environment: statement.environment,
      artifact_sha256: statement.artifactSha256,
    },
    set: set && { head: headJson(set.head), ...set.member },
    verified: metadata === undefined ? undefined : { metadata },
    steps,
    witnesses: witnesses.map(({ treeSize, ...witness }) => ({ ...witness, tree_size: treeSize })),
    unproven,
  };
}
