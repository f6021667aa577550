/** One element of WITNESSES: the members that all kinds have. */
import type { KeyObject } from 'node:crypto';
import { EnvironmentSchema } from '../../../gen/attestation/v1/environment_pb.js';
import { enumNames, findEnumNumber } from '../../protocol/enum-names.js';
import type { Principal } from '../../server/core/principal.js';
import { InvalidValue } from '../invalid-value.js';
import { findBoolean, findText, type Members, requireText } from '../members.js';
import { duration, plainText } from '../setting-types.js';
import type { SettingType } from '../settings.js';

/**
 * The members of one witness. `baseDir` is where relative paths start.
 * `quorumMembers` are the names in WITNESS_POLICY: these are not required one by one, unless they say so. `evmKey` is the
 * key of EVM witnesses without a key_file.
 */
export type WitnessEntry = Members & {
  baseDir: string;
  quorumMembers: ReadonlySet<string>;
  evmKey: KeyObject | undefined;
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
