/** WITNESS_POLICY: quorums of witnesses, such as `2 of tsa-a, tsa-b, tsa-c`. */

import { EnvironmentSchema } from '../../../gen/attestation/v1/environment_pb.js';
import { enumName } from '../../protocol/enum-names.js';
import { ENVIRONMENTS } from '../../protocol/environment.js';
import { InvalidValue } from '../invalid-value.js';
import { quote, type Settings, type SettingType } from '../settings.js';
import type { CommonWitnessConfig } from './entry.js';

/** At least `threshold` of the witnesses `members` must vouch for a batch. */
export type QuorumConfig = { readonly threshold: number; readonly members: readonly string[] };

const MAX_QUORUMS = 16;

const quorums: SettingType<QuorumConfig[]> = {
  expected:
    'quorums separated by ";", such as "2 of tsa-a, tsa-b, tsa-c"; "any of" is 1 of, "all of" each of them',
  parse: (text) => {
    const list = text.split(';').map(parseQuorum);
    if (list.length > MAX_QUORUMS) throw new InvalidValue(`it has more than ${MAX_QUORUMS} quorums`);
    return list;
  },
};

/** Reads WITNESS_POLICY. */
export function readWitnessPolicy(settings: Settings): QuorumConfig[] {
  return settings.get('WITNESS_POLICY', quorums, []);
}

/**
 * Reports quorums that cannot be met: members that WITNESSES does not have, or that an environment has too few of. A
 * quorum without a member in an environment does not apply there.
 */
export function reportImpossibleQuorums(
  { report }: Settings,
  configured: readonly QuorumConfig[],
  witnesses: readonly CommonWitnessConfig[],
): void {
  for (const quorum of configured) {
    const { threshold, members } = quorum;
    const unknown = members.find((name) => !witnesses.some((witness) => witness.name === name));
    if (unknown !== undefined) {
      const problem = `names ${quote(unknown)}, which is not in WITNESSES`;
      report({ name: 'WITNESS_POLICY', problem, expected: 'names of witnesses in WITNESSES' });
      continue;
    }
    for (const environment of ENVIRONMENTS) {
      const here = membersIn(quorum, environment, witnesses).length;
      if (here === 0 || here >= threshold) continue;
      const problem = `needs ${threshold} of ${members.join(', ')}, of which ${here} vouch for ${enumName(EnvironmentSchema, environment)}`;
      report({ name: 'WITNESS_POLICY', problem, expected: 'as many or more in each environment' });
    }
  }
}

/** The members of a quorum that vouch for an environment. */
export function membersIn(
  { members }: QuorumConfig,
  environment: number,
  witnesses: readonly Pick<CommonWitnessConfig, 'name' | 'environments'>[],
): string[] {
  const here = witnesses.filter(({ environments }) =>
    (environments as readonly number[]).includes(environment),
  );
  return members.filter((member) => here.some(({ name }) => name === member));
}

function parseQuorum(text: string): QuorumConfig {
  const [, count = '', list = ''] = /^\s*(\d{1,3}|any|all)\s+of\s+(.*?)\s*$/s.exec(text) ?? [];
  const members = list.split(',').map((name) => name.trim());
  if (!members.every((name) => /^[a-z0-9-]{1,32}$/.test(name))) throw new InvalidValue();
  if (new Set(members).size < members.length) throw new InvalidValue('it names a witness twice');
  const threshold = count === 'any' ? 1 : count === 'all' ? members.length : Number(count);
  if (threshold < 1 || threshold > members.length) {
    throw new InvalidValue(`${threshold} of ${members.length} is not possible`);
  }
  return { threshold, members };
}
