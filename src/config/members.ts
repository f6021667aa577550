/** Typed access to the members of an object in a setting of JSON. Problems are reported by the member's path. */
import { InvalidValue } from './invalid-value.js';
import { parseValue, quote, type Settings, type SettingType } from './settings.js';

/** An object of JSON. `at` is its path, such as `WITNESSES[0]`. */
export type Members = {
  at: string;
  members: Readonly<Record<string, unknown>>;
  report: Settings['report'];
};

/** Reports members that it may not have. */
export function reportUnknownMembers({ at, members, report }: Members, known: readonly string[]): void {
  for (const member of Object.keys(members).filter((name) => !known.includes(name))) {
    report({ name: at, problem: `has a member ${quote(member)}`, expected: `only ${known.join(', ')}` });
  }
}

/** Reads a string member. Reports an invalid one and returns undefined. */
export function findText<T>(object: Members, member: string, type: SettingType<T>): T | undefined {
  const value = object.members[member];
  const name = `${object.at}.${member}`;
  if (value === undefined) return undefined;
  if (typeof value === 'string') return parseValue(object.report, name, type, value);
  object.report({ name, problem: 'is not a string', expected: type.expected });
  return undefined;
}

/** Like `findText`; also reports a missing member. As with `Settings.require`, the result is then undefined despite its type. */
export function requireText<T>(object: Members, member: string, type: SettingType<T>): T {
  reportMissing(object, member, type.expected);
  return findText(object, member, type) as T;
}

/** Reads a non-empty array of at most `max` strings, or one string. Reports invalid elements by index. */
export function requireTexts<T>(
  object: Members,
  member: string,
  type: SettingType<T>,
  max: number,
): readonly T[] {
  const { at, members, report } = object;
  const name = `${at}.${member}`;
  reportMissing(object, member, type.expected);
  const value = members[member];
  if (value === undefined) return [];
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (list.length === 0 || list.length > max || !list.every((item) => typeof item === 'string')) {
    report({ name, problem: 'is wrong', expected: `an array of 1 to ${max} strings: ${type.expected}` });
    return [];
  }
  return list.flatMap((text, i) => {
    const parsed = parseValue(report, `${name}[${i}]`, type, text);
    return parsed === undefined ? [] : [parsed];
  });
}

/** Reads a whole number, given as a JSON number. Reports an invalid one and returns undefined. */
export function findInteger(
  { at, members, report }: Members,
  member: string,
  min: number,
  max: number,
): number | undefined {
  const value = members[member];
  if (value === undefined) return undefined;
  if (Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max) return Number(value);
  const expected = `a whole number from ${min} to ${max}`;
  report({ name: `${at}.${member}`, problem: 'is wrong', expected });
  return undefined;
}

/** Like `findInteger`; also reports a missing member. As with `Settings.require`, the result is then undefined despite its type. */
export function requireInteger(object: Members, member: string, min: number, max: number): number {
  reportMissing(object, member, `a whole number from ${min} to ${max}`);
  return findInteger(object, member, min, max) as number;
}

/** Reads a JSON boolean. Reports another value and returns undefined. */
export function findBoolean({ at, members, report }: Members, member: string): boolean | undefined {
  const value = members[member];
  if (value === undefined || typeof value === 'boolean') return value;
  report({ name: `${at}.${member}`, problem: 'is wrong', expected: 'true or false' });
  return undefined;
}

/** Reports a member that is not set. */
function reportMissing({ at, members, report }: Members, member: string, expected: string): void {
  if (members[member] !== undefined) return;
  report({ name: `${at}.${member}`, problem: 'is not set', expected });
}

/** Whether a value of JSON is an object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Parses JSON. Throws InvalidValue. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidValue('it is not JSON');
  }
}
