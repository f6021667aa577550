/** WITNESSES: external witnesses, as JSON or as the path of a JSON file. */
import { dirname, resolve } from 'node:path';
import { WitnessKind } from '../../gen/attestation/v1/bundle_pb.js';
import { EnvironmentSchema } from '../../gen/attestation/v1/environment_pb.js';
import { enumNames, findEnumNumber } from '../protocol/enum-names.js';
import type { Principal } from '../server/core/principal.js';
import { certificateChain } from './certificate-chain.js';
import { readSettingFile } from './setting-files.js';
import { duration, outboundUrl, plainText } from './setting-types.js';
import { InvalidValue, parseValue, quote, type Settings, type SettingType } from './settings.js';

/** A time-stamping authority (RFC 3161). */
export type WitnessConfig = {
  readonly name: string;
  readonly kind: WitnessKind.RFC3161;
  readonly environments: readonly Principal['environment'][];
  readonly url: string;
  /** Whether a batch needs its time stamp to become witnessed. */
  readonly required: boolean;
  /** Minimum interval between requests; 0 requests a time stamp for each checkpoint. */
  readonly everyMs: number;
  /** Who runs it. */
  readonly operator: string;
  /** Its certificate chain in PEM, leaf first. */
  readonly chainPem: readonly string[];
  /** The required policy of its time stamps, as a dotted object identifier. */
  readonly policyOid: string | undefined;
};

type Report = Settings['report'];

/** The members of one witness; `at` is its path, such as `WITNESSES[0]`. */
type WitnessEntry = {
  at: string;
  members: Readonly<Record<string, unknown>>;
  baseDir: string;
  report: Report;
};

const MAX_WITNESSES = 64;
const MEMBERS = new Set([
  'name',
  'kind',
  'environments',
  'url',
  'required',
  'every',
  'operator',
  'chain_file',
  'chain_pem',
  'policy_oid',
]);

const witnessList: SettingType<{ entries: unknown[]; baseDir: string }> = {
  expected: 'a JSON array of witnesses, or the path of a file with one',
  secret: true,
  parse: (text) => {
    const isInline = /^\s*[[{]/.test(text);
    const entries = parseJson(isInline ? text : readSettingFile(text));
    if (!Array.isArray(entries)) throw new InvalidValue('it is not a JSON array');
    if (entries.length > MAX_WITNESSES) throw new InvalidValue(`it has more than ${MAX_WITNESSES} witnesses`);
    return { entries, baseDir: isInline ? '.' : dirname(text) };
  },
};

const witnessName: SettingType<string> = {
  expected: '1 to 32 lower-case letters, digits or "-", but not "log"',
  parse: (text) => {
    if (!/^[a-z0-9-]{1,32}$/.test(text) || text === 'log') throw new InvalidValue();
    return text;
  },
};

const witnessKind: SettingType<WitnessKind.RFC3161> = {
  expected: 'rfc3161',
  parse: (text) => {
    if (text !== 'rfc3161') throw new InvalidValue();
    return WitnessKind.RFC3161;
  },
};

const objectIdentifier: SettingType<string> = {
  expected: 'a dotted object identifier, such as 1.3.6.1.4.1.13762.3',
  parse: (text) => {
    if (text.length > 128 || !/^[0-2](\.(0|[1-9]\d{0,38}))+$/.test(text)) throw new InvalidValue();
    return text;
  },
};

/** Reads WITNESSES. Reports invalid members by path, such as `WITNESSES[0].every`. */
export function readWitnesses(settings: Settings): WitnessConfig[] {
  const { entries, baseDir } = settings.get('WITNESSES', witnessList, { entries: [], baseDir: '.' });
  const witnesses = entries.map((members, index) => {
    const at = `WITNESSES[${index}]`;
    if (isObject(members)) return readWitness({ at, members, baseDir, report: settings.report });
    settings.report({ name: at, problem: 'is not an object', expected: 'an object with name, kind and url' });
    return undefined;
  });
  const read = witnesses.filter((witness) => witness !== undefined);
  reportRepeatedNames(settings.report, read);
  return read;
}

/** Time for an attempt that times out and its retry. */
const RETRY_MARGIN_MS = 60_000;

/**
 * Reports required witnesses whose interval is too long: a batch sealed right after a time stamp would reach its
 * deadline before the next one.
 */
export function reportInfrequentWitnesses(
  { report }: Settings,
  witnesses: readonly WitnessConfig[],
  deadlineMs: number,
): void {
  for (const { name, required, everyMs } of witnesses) {
    if (!required || everyMs === 0 || everyMs + RETRY_MARGIN_MS <= deadlineMs) continue;
    report({
      name: 'WITNESSES',
      problem: `has an "every" for ${quote(String(name))}, which is required, that is too long for WITNESS_DEADLINE`,
      expected: 'an "every" that is at least a minute shorter, or "required": false',
    });
  }
}

function readWitness(entry: WitnessEntry): WitnessConfig {
  reportUnknownMembers(entry);
  const url = requireText(entry, 'url', outboundUrl);
  return {
    name: requireText(entry, 'name', witnessName),
    kind: requireText(entry, 'kind', witnessKind),
    environments: readEnvironments(entry),
    url,
    required: readRequired(entry),
    everyMs: findText(entry, 'every', duration('1s', '30d')) ?? 0,
    operator: findText(entry, 'operator', plainText(200)) ?? hostOf(url),
    chainPem: readChain(entry),
    policyOid: findText(entry, 'policy_oid', objectIdentifier),
  };
}

function reportUnknownMembers({ at, members, report }: WitnessEntry): void {
  for (const member of Object.keys(members).filter((name) => !MEMBERS.has(name))) {
    report({
      name: at,
      problem: `has a member ${quote(member)}`,
      expected: `only ${[...MEMBERS].join(', ')}`,
    });
  }
}

function reportRepeatedNames(report: Report, witnesses: readonly WitnessConfig[]): void {
  const names = witnesses.map(({ name }) => name);
  const repeated = names.filter((name, index) => name !== undefined && names.indexOf(name) !== index);
  for (const name of new Set(repeated)) {
    report({
      name: 'WITNESSES',
      problem: `has more than one ${quote(name)}`,
      expected: 'unique names',
    });
  }
}

function findText<T>(
  { at, members, report }: WitnessEntry,
  member: string,
  type: SettingType<T>,
): T | undefined {
  const value = members[member];
  const name = `${at}.${member}`;
  if (value === undefined) return undefined;
  if (typeof value === 'string') return parseValue(report, name, type, value);
  report({ name, problem: 'is not a string', expected: type.expected });
  return undefined;
}

/** As with `Settings.require`, a missing value is reported and undefined despite its type. */
function requireText<T>(entry: WitnessEntry, member: string, type: SettingType<T>): T {
  if (entry.members[member] === undefined) {
    entry.report({ name: `${entry.at}.${member}`, problem: 'is not set', expected: type.expected });
  }
  return findText(entry, member, type) as T;
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

function readRequired({ at, members, report }: WitnessEntry): boolean {
  const { required = true } = members;
  if (typeof required === 'boolean') return required;
  report({ name: `${at}.required`, problem: 'is wrong', expected: 'true or false' });
  return false;
}

function readChain(entry: WitnessEntry): string[] {
  const { at, members, baseDir, report } = entry;
  const { expected } = certificateChain;
  if ((members.chain_file === undefined) === (members.chain_pem === undefined)) {
    report({ name: at, problem: 'needs one of chain_file and chain_pem', expected });
    return [];
  }
  if (members.chain_pem !== undefined) return findText(entry, 'chain_pem', certificateChain) ?? [];
  const parse = (path: string) => certificateChain.parse(readSettingFile(resolve(baseDir, path)));
  return findText(entry, 'chain_file', { expected: `a file with ${expected}`, parse }) ?? [];
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidValue('it is not JSON');
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function hostOf(url: string | undefined): string {
  return url === undefined ? '' : new URL(url).hostname;
}
