/** How a verification says what it found: checks, gathered into the eight named steps. */

/** `not_checked` is never a pass: what it stands for is unknown. */
export type CheckStatus = 'passed' | 'failed' | 'not_checked';

/** One finding. `code` is stable, `message` a sentence without a full stop, `path` a JSON pointer into the bundle. */
export type Check = {
  readonly code: string;
  readonly status: CheckStatus;
  readonly message: string;
  readonly path?: string;
  /** On a check that could not be made: the verdict must wait for it. */
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

/** A step with all its checks; its own code and message are those of what decided its status. */
export type Step<Name extends string = StepName> = {
  readonly name: Name;
  readonly status: CheckStatus;
  readonly code: string;
  readonly message: string;
  readonly checks: readonly Check[];
};

/** A check that holds. */
export function passed(code: string, message: string): Check {
  return { code, status: 'passed', message };
}

/** A check that does not hold; `path` is where in the bundle. */
export function failed(code: string, message: string, path?: string): Check {
  return { code, status: 'failed', message, ...(path !== undefined && { path }) };
}

/** A check nobody asked for, or that says no more than "unknown": the verdict does not wait for it. */
export function notChecked(code: string, message: string): Check {
  return { code, status: 'not_checked', message };
}

/** A check that the verdict needs and that could not be made. */
export function missing(code: string, message: string): Check {
  return { code, status: 'not_checked', message, blocking: true };
}

/** Gathers a step. It failed if any check did; it is not checked if one that it needs is not, or none was made. */
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
