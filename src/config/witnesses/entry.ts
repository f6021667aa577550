/** One element of WITNESSES: typed access to its members, with the members that all kinds have. */
import type { KeyObject } from 'node:crypto';
import { EnvironmentSchema } from '../../../gen/attestation/v1/environment_pb.js';
import { enumNames, findEnumNumber } from '../../protocol/enum-names.js';
import type { Principal } from '../../server/core/principal.js';
import { duration, plainText } from '../setting-types.js';
import { InvalidValue, parseValue, quote, type Settings, type SettingType } from '../settings.js';

/**
 * The members of one witness. `at` is its path, such as `WITNESSES[0]`; `baseDir` is where relative paths start.
 * `quorumMembers` are the names in WITNESS_POLICY: these are not required one by one, unless they say so. `evmKey` is the
 * key of EVM witnesses without a key_file.
 */
export type WitnessEntry = {
  at: string;
  members: Readonly<Record<string, unknown>>;
  baseDir: string;
  quorumMembers: ReadonlySet<string>;
  evmKey: KeyObject | undefined;
  report: Settings['report'];
};

/** The settings that all kinds of witnesses have. */
export type CommonWitnessConfig = {
  readonly name: string;
  readonly environments: readonly Principal['environment'][];
  /** Whether a batch needs its evidence to become witnessed. */
  readonly required: boolean;
  /** Minimum interval between requests; 0 makes a request for each checkpoint. */
  readonly everyMs: number;
};

/** The members of every kind. */
export const COMMON_MEMBERS = ['name', 'kind', 'environments', 'required', 'every'];

const witnessName: SettingType<string> = {
  expected: '1 to 32 lower-case letters, digits or "-", but not "log"',
  parse: (text) => {
    if (!/^[a-z0-9-]{1,32}$/.test(text) || text === 'log') throw new InvalidValue();
    return text;
  },
};

/** Reads the members that all kinds have. `defaults` are those of the kind; otherwise required and without interval. */
export function readCommon(
  entry: WitnessEntry,
  defaults: { required?: boolean; everyMs?: number } = {},
): CommonWitnessConfig {
  const name = requireText(entry, 'name', witnessName);
  const isRequired = (defaults.required ?? true) && !entry.quorumMembers.has(name);
  return {
    name,
    environments: readEnvironments(entry),
    required: findBoolean(entry, 'required') ?? isRequired,
    everyMs: findText(entry, 'every', duration('1s', '30d')) ?? defaults.everyMs ?? 0,
  };
}

/** Reads who runs the witness, for trust roots and reports. */
export function findOperator(entry: WitnessEntry): string | undefined {
  return findText(entry, 'operator', plainText(200));
}

/** Reports members that the kind does not have. */
export function reportUnknownMembers({ at, members, report }: WitnessEntry, known: readonly string[]): void {
  for (const member of Object.keys(members).filter((name) => !known.includes(name))) {
    report({ name: at, problem: `has a member ${quote(member)}`, expected: `only ${known.join(', ')}` });
  }
}

/** Reads a string member. Reports an invalid one and returns undefined. */
export function findText<T>(entry: WitnessEntry, member: string, type: SettingType<T>): T | undefined {
  const value = entry.members[member];
  const name = `${entry.at}.${member}`;
  if (value === undefined) return undefined;
  if (typeof value === 'string') return parseValue(entry.report, name, type, value);
  entry.report({ name, problem: 'is not a string', expected: type.expected });
  return undefined;
}

/** Like `findText`; also reports a missing member. As with `Settings.require`, the result is then undefined despite its type. */
export function requireText<T>(entry: WitnessEntry, member: string, type: SettingType<T>): T {
  reportMissing(entry, member, type.expected);
  return findText(entry, member, type) as T;
}

/** Reads a non-empty array of at most `max` strings, or one string. Reports invalid elements by index. */
export function requireTexts<T>(
  entry: WitnessEntry,
  member: string,
  type: SettingType<T>,
  max: number,
): readonly T[] {
  const { at, members, report } = entry;
  const name = `${at}.${member}`;
  reportMissing(entry, member, type.expected);
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
  { at, members, report }: WitnessEntry,
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
export function requireInteger(entry: WitnessEntry, member: string, min: number, max: number): number {
  reportMissing(entry, member, `a whole number from ${min} to ${max}`);
  return findInteger(entry, member, min, max) as number;
}

/** Reads a JSON boolean. Reports another value and returns undefined. */
export function findBoolean({ at, members, report }: WitnessEntry, member: string): boolean | undefined {
  const value = members[member];
  if (value === undefined || typeof value === 'boolean') return value;
  report({ name: `${at}.${member}`, problem: 'is wrong', expected: 'true or false' });
  return undefined;
}

function reportMissing({ at, members, report }: WitnessEntry, member: string, expected: string): void {
  if (members[member] !== undefined) return;
  report({ name: `${at}.${member}`, problem: 'is not set', expected });
}

function readEnvironments({ at, members, report }: WitnessEntry): Principal['environment'][] {
  const known = enumNames(EnvironmentSchema);
  const { environments = known } = members;
  const isList = Array.isArray(environments) && environments.length > 0;
  if (!isList || !environments.every((text) => known.includes(text))) {
    const expected = `an array of ${known.join(' and ')}, or one of them`;
    report({ name: `${at}.environments`, problem: 'is wrong', expected });
    return [];
  }
  const numbers = environments.map((text) => findEnumNumber(EnvironmentSchema, text));
  return [...new Set(numbers)] as Principal['environment'][];
}
