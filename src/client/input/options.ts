/** Options of the library's functions: each must be known and of its type. */
import { kindOf } from './plain-json.js';

/** Whether a value is right for an option, and in words what is. */
export type OptionCheck = { readonly isRight: (value: unknown) => boolean; readonly expected: string };

/** A check for each option of a type. */
export type OptionChecks<T> = { readonly [K in keyof T]-?: OptionCheck };

/** Throws TypeError if an option is unknown, or of another type than it should be. Undefined is an option not given. */
export function checkOptions<T extends object>(options: T | undefined, checks: OptionChecks<T>): void {
  const { others } = splitOptions(options, checks);
  const [unknown] = Reflect.ownKeys(others);
  if (unknown === undefined) return;
  throw new TypeError(`there is no option ${String(unknown)}: there are ${Object.keys(checks).join(', ')}`);
}

/** Checks the options that `checks` names, and returns the others beside them. Throws TypeError. */
export function splitOptions<T extends object, C extends object>(
  options: T | undefined,
  checks: OptionChecks<C>,
): { own: Pick<T, keyof T & keyof C>; others: Omit<T, keyof C> } {
  const given: unknown = options === undefined ? {} : options;
  if (Object.prototype.toString.call(given) !== '[object Object]') {
    throw new TypeError(`options must be an object, not ${kindOf(given)}`);
  }
  const own: Record<string, unknown> = {};
  const others = { ...(given as T) } as Record<string, unknown>;
  for (const [name, { isRight, expected }] of Object.entries<OptionCheck>(checks)) {
    const value = (given as Record<string, unknown>)[name];
    delete others[name];
    if (value === undefined) continue;
    if (!isRight(value)) throw new TypeError(`the option ${name} must be ${expected}, not ${kindOf(value)}`);
    own[name] = value;
  }
  return { own: own as Pick<T, keyof T & keyof C>, others: others as Omit<T, keyof C> };
}

/** An option of a primitive type. */
export const STRING: OptionCheck = { isRight: (value) => typeof value === 'string', expected: 'a string' };

/** A function. */
export const FUNCTION: OptionCheck = {
  isRight: (value) => typeof value === 'function',
  expected: 'a function',
};

/** A Date that is a time. */
export const DATE: OptionCheck = {
  isRight: (value) => value instanceof Date && !Number.isNaN(value.getTime()),
  expected: 'a Date that is a valid time',
};

/** Bytes. */
export const BYTES: OptionCheck = { isRight: isAttached, expected: 'a Uint8Array whose bytes are there' };

/** An AbortSignal of any implementation. */
export const SIGNAL: OptionCheck = {
  isRight: (value) =>
    typeof value === 'object' && value !== null && 'aborted' in value && 'addEventListener' in value,
  expected: 'an AbortSignal',
};

/** Of longer ones timers make a millisecond. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** How long one attempt may take. */
export const TIMEOUT: OptionCheck = {
  isRight: (value) => typeof value === 'number' && value > 0 && value <= MAX_TIMER_MS,
  expected: 'a number of milliseconds above 0, at most 2147483647',
};

/** How long several attempts may take. */
export const WAIT: OptionCheck = {
  isRight: (value) => typeof value === 'number' && value >= 0,
  expected: 'a number of milliseconds from 0',
};

/** How often something is tried. */
export const COUNT: OptionCheck = {
  isRight: (value) => Number.isInteger(value) && (value as number) >= 0,
  expected: 'an integer from 0',
};

/** An idempotency key. */
export const IDEMPOTENCY_KEY: OptionCheck = {
  isRight: (value) => typeof value === 'string' && /^[\x21-\x7e]{1,255}$/.test(value),
  expected: '1 to 255 visible ASCII characters',
};

/** Anything: what uses the option checks it. */
export const ANYTHING: OptionCheck = { isRight: () => true, expected: 'anything' };

/** One of some texts. */
export function oneOf(...texts: readonly string[]): OptionCheck {
  return { isRight: (value) => texts.includes(value as string), expected: texts.join(' or ') };
}

/** Either of two. */
export function either(a: OptionCheck, b: OptionCheck): OptionCheck {
  return {
    isRight: (value) => a.isRight(value) || b.isRight(value),
    expected: `${a.expected} or ${b.expected}`,
  };
}

/** Whether a value is bytes whose buffer was not transferred to somewhere else, which leaves none. */
export function isAttached(value: unknown): value is Uint8Array {
  if (!(value instanceof Uint8Array)) return false;
  try {
    new Uint8Array(value.buffer);
    return true;
  } catch {
    return false;
  }
}
