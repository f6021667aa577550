/** Errors of witnesses for a caller: operators see the text, which may name hosts of theirs, others the class. */
import type { Call } from '../../core/call.js';
import type { WitnessErrorClass } from '../store/error-class.js';

type StoredError = { lastError: string | null; lastErrorClass: string | null };

const OTHER = 'the request to the witness failed';

const TEXTS: Readonly<Record<WitnessErrorClass, string>> = {
  unreachable: 'the witness cannot be reached, or did not answer in time',
  rejected: 'the witness rejected the request',
  invalid: 'the witness sent an invalid answer',
  contradiction: 'the witness contradicts the log, and the operator is alarmed',
  other: OTHER,
};

/** Whether the caller is the operator: by the admin token, or by a session of the operator. */
export function isOperator({ principal, session }: Pick<Call, 'principal' | 'session'>): boolean {
  return session === undefined ? principal === undefined : session.projectId === undefined;
}

/** The error as one line for operators, or for everybody; undefined if there is none. */
export function witnessErrorText(
  { lastError, lastErrorClass }: StoredError,
  isForOperator: boolean,
): string | undefined {
  if (lastError === null || lastError === '') return undefined;
  if (isForOperator) return lastError;
  return Object.hasOwn(TEXTS, lastErrorClass ?? '') ? TEXTS[lastErrorClass as WitnessErrorClass] : OTHER;
}
