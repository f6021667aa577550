import type { Check, CheckStatus, StepName } from '../../../proof/verify/report.js';
import type { Verdict } from '../../../proof/verify/verify.js';

/** What each step is called, and what it shows when it has passed. */
export const STEP_TEXTS: Readonly<Record<StepName, { title: string; shows: string }>> = {
  shape: {
    title: 'The bundle is complete',
    shows: 'It has every part of a proof, and the parts agree with each other.',
  },
  statement: {
    title: 'It is about this file',
    shows: 'The statement names the SHA-256 of exactly this file. Changing one bit of the file changes that.',
  },
  signature: {
    title: 'The service signed the statement',
    shows: 'The signature is by a key in the trust roots that was in use at the proven time.',
  },
  leaf: {
    title: 'The log’s entry is this statement',
    shows: 'The entry, made anew from statement and signature, is the one that the log holds.',
  },
  inclusion: {
    title: 'The entry is in the log',
    shows: 'Hashed with its neighbours, step by step, the entry leads to the root of the whole log.',
  },
  checkpoint: {
    title: 'The log signed that root',
    shows: 'A checkpoint fixes the log’s size and root. Nothing before it can change without notice.',
  },
  witnesses: {
    title: 'Others vouch for the checkpoint',
    shows: 'Each witness signed this checkpoint with a key or certificate in the trust roots.',
  },
  policy: {
    title: 'All required witnesses did',
    shows: 'Those that the trust roots require at the proven time are among them.',
  },
};

/** Whether checks are about a set of files, well-formed or not. */
export function areOfSet(checks: readonly Check[]): boolean {
  return checks.some(({ code }) => code.startsWith('set.'));
}

/** The same of the statement about a set of files. */
export const SET_TEXTS = {
  title: 'It is about this set of files',
  shows:
    'The statement names the SHA-256 of the set’s head. Changing path, length or content of one file changes that.',
};

/** The word for each status, which is always beside its symbol. */
export const STATUS_WORDS: Readonly<Record<CheckStatus, string>> = {
  passed: 'Passed',
  failed: 'Failed',
  not_checked: 'Not checked',
};

/** The status that a verdict is drawn like, and its headline. */
export const VERDICT_TEXTS: Readonly<Record<Verdict, { status: CheckStatus; title: string }>> = {
  verified: { status: 'passed', title: 'Verified' },
  not_verified: { status: 'failed', title: 'Not verified' },
  could_not_check: { status: 'not_checked', title: 'Not fully checked' },
};

/** What witnesses of each kind are, as an adjective phrase after their name. */
const KINDS: ReadonlyMap<string, string> = new Map([
  ['transparency_log', 'the service’s own log'],
  ['log_witness', 'a witness that cosigns the log'],
  ['rfc3161', 'a time-stamping authority'],
  ['opentimestamps', 'OpenTimestamps, anchored in Bitcoin'],
  ['evm', 'a contract on a blockchain'],
  ['unknown', 'a witness of a kind that this page does not know'],
]);

/** A witness's kind in words. */
export function kindText(kind: string): string {
  return KINDS.get(kind) ?? kind;
}
