/** The trust roots of one environment as a C2SP tlog-policy: its logs, its C2SP witnesses and how many of them must cosign. */
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { equalBytes } from '../../proof/bytes/primitives.js';
import { encodeVerifierKey, type NoteKey, noteKey, parseVerifierKey } from '../../proof/log/note.js';
import { encodePolicy, type PolicyGroup, type PolicyWitness } from '../../proof/log/tlog-policy.js';
import type { Log } from '../log/store/logs.js';
import type { DatedPolicy } from '../log/store/policies.js';
import type { TrustedWitnessRow } from '../witnessing/store/trusted-witnesses.js';

/** The inputs of a policy. `logs` are of the environment, with their addresses. */
type PolicySources = {
  readonly logs: readonly { readonly log: Log; readonly url: string }[];
  readonly witnesses: readonly TrustedWitnessRow[];
  /** The newest policy of the environment. */
  readonly policy: DatedPolicy | undefined;
};

/** The format has no other kinds of witnesses, and a witness counts in one group only. */
const REMARK = `# Logs and C2SP witnesses of trust_roots.json. Witnesses of other kinds are not listed: of a quorum with such
# members, as many C2SP witnesses are required as are needed if all the others vouch.
`;

const REPEATED = `# The format has a key once. These have that of a log above; verify one of them with its line in place of that one.
`;

/** The text of the policy, with the keys that are trusted at present. */
export function logPolicy({ logs, witnesses, policy }: PolicySources, now: Date): string {
  const current = currentWitnesses(witnesses, now);
  const quorum = quorumOf(policy, new Set(current.map(({ name }) => name)));
  const parts = current.map(({ name, keys }) => policyWitness(name, keys));
  const { listed, repeated } = logsByKey(logs);
  return (
    REMARK +
    encodePolicy({
      logs: listed,
      witnesses: parts.flatMap((part) => part.witnesses),
      groups: [...parts.flatMap((part) => part.groups), ...quorum.groups],
      quorum: quorum.name,
    }) +
    (repeated.length === 0 ? '' : REPEATED) +
    repeated.map(({ key, url }) => `# log ${encodeVerifierKey(key)} ${url}\n`).join('')
  );
}

type LocatedLog = { key: NoteKey; url: string };

/** The first lane's newest log of each key, and the other logs. */
function logsByKey(logs: PolicySources['logs']): { listed: LocatedLog[]; repeated: LocatedLog[] } {
  const ordered = [...logs].sort((a, b) => b.log.epoch - a.log.epoch || a.log.lane - b.log.lane);
  const listed: LocatedLog[] = [];
  const repeated: LocatedLog[] = [];
  for (const { log, url } of ordered) {
    const isKnown = listed.some(({ key }) => equalBytes(key.publicKey, log.publicKey));
    (isKnown ? repeated : listed).push({ key: noteKey(log.origin, log.publicKey), url });
  }
  return { listed, repeated };
}

type CurrentWitness = { name: string; keys: string[] };

function currentWitnesses(rows: readonly TrustedWitnessRow[], now: Date): CurrentWitness[] {
  const byName = new Map<string, Set<string>>();
  const taken = new Set<string>();
  for (const { name, identity, validTo } of rows) {
    if (identity.kind !== WitnessKind.LOG_WITNESS || (validTo !== null && validTo <= now)) continue;
    const keys = byName.get(name) ?? new Set();
    // One key is one witness, even if it had another name before.
    for (const key of identity.verifierKeys.filter((one) => keys.has(one) || !taken.has(one))) {
      keys.add(key);
      taken.add(key);
    }
    if (keys.size > 0) byName.set(name, keys);
  }
  return [...byName].map(([name, keys]) => ({ name, keys: [...keys] }));
}

/** A witness with several keys is a group of which any has to sign. Names of witnesses have no dot. */
function policyWitness(
  name: string,
  verifierKeys: readonly string[],
): { witnesses: PolicyWitness[]; groups: PolicyGroup[] } {
  const keys = verifierKeys.map(parseVerifierKey);
  if (keys.length === 1) return { witnesses: keys.map((key) => ({ name, key })), groups: [] };
  const witnesses = keys.map((key) => ({ name: `${name}.${key.keyId}`, key }));
  return { witnesses, groups: [{ name, threshold: 1, members: witnesses.map((one) => one.name) }] };
}

/** Required witnesses and quorums, all to be met. A name can be in one group: where it is in a second one, that needs one less. */
function quorumOf(
  policy: DatedPolicy | undefined,
  known: ReadonlySet<string>,
): { name: string | undefined; groups: PolicyGroup[] } {
  const required = policy?.witnesses.filter((witness) => witness.required && known.has(witness.name)) ?? [];
  const needed = required.map(({ name }) => name);
  const used = new Set(needed);
  const groups: PolicyGroup[] = [];
  for (const quorum of policy?.quorums ?? []) {
    const members = quorum.members.filter((name) => known.has(name) && !used.has(name));
    const threshold = quorum.threshold - (quorum.members.length - members.length);
    if (threshold < 1) continue;
    const name = `quorum.${groups.length + 1}`;
    groups.push({ name, threshold, members });
    needed.push(name);
    for (const member of members) used.add(member);
  }
  const [only, ...more] = needed;
  if (more.length === 0) return { name: only, groups };
  const all = { name: 'quorum.all', threshold: needed.length, members: needed };
  return { name: all.name, groups: [...groups, all] };
}
