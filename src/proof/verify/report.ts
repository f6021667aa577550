/** Report of a verification: checks, combined into the eight named steps. */

/** `not_checked` never counts as passed. */
export type CheckStatus = 'passed' | 'failed' | 'not_checked';

/** One result. `code` is stable, `message` a sentence without full stop, `path` a JSON pointer into the bundle. */
export type Check = {
  readonly code: string;
  readonly status: CheckStatus;
  readonly message: string;
  readonly path?: string;
  /** Set if the check was not possible and the verdict depends on it. */
  readonly blocking?: boolean;
};

/** The steps of a verification, in order. */
export const STEP_NAMES = [
  'shape',
  'statement',
  'signature',
  'leaf',
  'inclusion',
  'checkpoint',
  'witnesses',
  'policy',
] as const;

export type StepName = (typeof STEP_NAMES)[number];

/** A step with all its checks. Code and message are those of the check that decided its status. */
export type Step<Name extends string = StepName> = {
  readonly name: Name;
  readonly status: CheckStatus;
  readonly code: string;
  readonly message: string;
  readonly checks: readonly Check[];
};

/** A check that passed. */
export function passed(code: string, message: string): Check {
  return { code, status: 'passed', message };
}

/** A check that failed; `path` is a JSON pointer into the bundle. */
export function failed(code: string, message: string, path?: string): Check {
  return { code, status: 'failed', message, ...(path !== undefined && { path }) };
}

/** A check that was not requested or has no result; the verdict does not depend on it. */
export function notChecked(code: string, message: string): Check {
  return { code, status: 'not_checked', message };
}

/** A check that was not possible although the verdict depends on it. */
export function missing(code: string, message: string): Check {
  return { code, status: 'not_checked', message, blocking: true };
}

/**
 * Combines checks into a step: `failed` if any failed; `not_checked` if a required one is missing or there are none.
 */
export function step<Name extends string>(name: Name, checks: readonly Check[]): Step<Name> {
  const status = stepStatus(checks);
  const deciding = checks.filter((check) => check.status === status);
  const needed = status === 'not_checked' ? deciding.filter((check) => check.blocking) : deciding;
  const [first] = needed.length > 0 ? needed : deciding;
  return {
    name,
    status,
    code: status === 'passed' || first === undefined ? `${name}.${status}` : first.code,
    message: (needed.length > 0 ? needed : deciding).map(({ message }) => message).join('; '),
    checks,
  };
}

function stepStatus(checks: readonly Check[]): CheckStatus {
  if (checks.some(({ status }) => status === 'failed')) return 'failed';
  if (checks.some(({ blocking }) => blocking)) return 'not_checked';
  return checks.some(({ status }) => status === 'passed') ? 'passed' : 'not_checked';
}
