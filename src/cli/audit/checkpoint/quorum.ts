/** Whether enough witnesses have cosigned a checkpoint. */
import { FormatError } from '../../../proof/bytes/format-error.js';
import { equalBytes } from '../../../proof/bytes/primitives.js';
import { parsePolicy, type TlogPolicy } from '../../../proof/log/tlog-policy.js';
import { UsageError } from '../../cli.js';
import { readInputFile } from '../../input/input-file.js';
import type { Cosigned } from './seen-checkpoint.js';

/** Whether the witnesses that cosigned a checkpoint are enough. */
export type Quorum = (cosigned: readonly Cosigned[]) => boolean;

const MAX_POLICY_BYTES = 1024 * 1024;

/** At least `count` witnesses. One with several keys counts once. */
export function countQuorum(count: number): Quorum {
  return (cosigned) => new Set(cosigned.map(({ name }) => name)).size >= count;
}

/** The quorum of a policy (C2SP tlog-policy). A group counts once, and its members come before it. */
export function policyQuorum({ witnesses, groups, quorum }: TlogPolicy): Quorum {
  return (cosigned) => {
    const isMet = ({ key }: TlogPolicy['witnesses'][number]) =>
      cosigned.some((one) => equalBytes(one.key.publicKey, key.publicKey));
    const met = new Set(witnesses.filter(isMet).map(({ name }) => name));
    for (const { name, threshold, members } of groups) {
      if (members.filter((member) => met.has(member)).length >= threshold) met.add(name);
    }
    return quorum === undefined || met.has(quorum);
  };
}

/** Reads a policy file. Throws UsageError. */
export async function readPolicyFile(path: string): Promise<TlogPolicy> {
  const bytes = await readInputFile(path, 'a policy', MAX_POLICY_BYTES);
  try {
    return parsePolicy(Buffer.from(bytes).toString('utf8'));
  } catch (error) {
    if (error instanceof FormatError) throw new UsageError(`${path} is not a policy: ${error.message}`);
    throw error;
  }
}
