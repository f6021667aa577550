/** A verification as text and as JSON. */

import { headJson, notBeforeText } from '../../proof/set/head.js';
import { type PublicStatement, subjectsOf } from '../../proof/statement/public-statement.js';
import { isPublic, type Statement } from '../../proof/statement/statement.js';
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
  const { steps, summary, verdict } = verification;
  const { set, statement } = verdict === 'verified' ? verification : {};
  const notBefore = set?.head.notBefore;
  return [
    ...formatSteps(steps),
    '',
    `Trusting ${trustOrigin}`,
    '',
    summary,
    ...(statement && isPublic(statement) ? [predicateText(statement)] : []),
    ...(notBefore === undefined ? [] : [notBeforeText(notBefore)]),
  ];
}

const MAX_PREDICATE_CHARACTERS = 400;

function predicateText({
  predicateType,
  predicate,
}: Pick<PublicStatement, 'predicateType' | 'predicate'>): string {
  const text = JSON.stringify(predicate);
  const isCut = text.length > MAX_PREDICATE_CHARACTERS;
  const shown = isCut ? `${text.slice(0, MAX_PREDICATE_CHARACTERS)} … (--json prints all of it)` : text;
  return `It states ${predicateType}: ${shown}`;
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
  const { statement, set, existedBy } = verdict === 'verified' ? verification : {};
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
      artifact_name: statement.artifactName,
    },
    set: set && { head: headJson(set.head), ...set.member },
    verified: statement && verifiedJson(statement, verification.metadata),
    steps,
    witnesses: witnesses.map(({ treeSize, ...witness }) => ({ ...witness, tree_size: treeSize })),
    unproven,
  };
}

/**
 * What a policy decides on: the identity that submitted, the predicate and subjects of a public statement, and the metadata
 * that opens the commitment of a private one. Undefined if there is none of these.
 */
function verifiedJson(statement: Statement, metadata: unknown): object | undefined {
  const { identity } = statement;
  const stated = isPublic(statement)
    ? {
        predicate_type: statement.predicateType,
        predicate: statement.predicate,
        subjects: subjectsOf(statement),
      }
    : {};
  const verified = { ...(identity && { identity }), ...stated, ...(metadata !== undefined && { metadata }) };
  return Object.keys(verified).length === 0 ? undefined : verified;
}
