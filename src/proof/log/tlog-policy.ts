/**
 * Trust policies of transparency logs (C2SP tlog-policy): the logs, and the witnesses that must cosign their
 * checkpoints. A text of lines `log`, `witness`, `group` and `quorum`.
 */
import { FormatError } from '../bytes/format-error.js';
import { equalBytes } from '../bytes/primitives.js';
import {
  ED25519_NOTE_KEY,
  encodeVerifierKey,
  ML_DSA_44_NOTE_KEY,
  type NoteKey,
  parseVerifierKey,
} from './note.js';

/** A log; the key's name is its origin. */
export type PolicyLog = { readonly key: NoteKey; readonly url?: string };

/** A witness; `name` is for this policy only. */
export type PolicyWitness = { readonly name: string; readonly key: NoteKey; readonly url?: string };

/** A group has cosigned if at least `threshold` of its members have, witnesses or earlier groups. */
export type PolicyGroup = {
  readonly name: string;
  readonly threshold: number;
  readonly members: readonly string[];
};

/** A checkpoint is valid if one of the logs signed it and the witness or group `quorum` cosigned it; undefined: nobody needs to. */
export type TlogPolicy = {
  readonly logs: readonly PolicyLog[];
  readonly witnesses: readonly PolicyWitness[];
  readonly groups: readonly PolicyGroup[];
  readonly quorum: string | undefined;
};

const NONE = 'none';
const MAX_POLICY_CHARACTERS = 512 * 1024;
const MAX_ITEMS = 256;

/** The text of a policy. Throws FormatError if it breaks a rule of the format. */
export function encodePolicy(policy: TlogPolicy): string {
  const { logs, witnesses, groups, quorum = NONE } = policy;
  const lines = [
    ...logs.map(({ key, url }) => ['log', encodeVerifierKey(key), ...(url ? [url] : [])]),
    ...witnesses.map(({ name, key, url }) => [
      'witness',
      name,
      encodeVerifierKey(key),
      ...(url ? [url] : []),
    ]),
    ...groups.map(({ name, threshold, members }) => [
      'group',
      name,
      thresholdText(threshold, members),
      ...members,
    ]),
    ['quorum', quorum],
  ];
  const text = lines.map((words) => `${words.join(' ')}\n`).join('');
  parsePolicy(text);
  return text;
}

function thresholdText(threshold: number, { length }: readonly string[]): string {
  if (threshold === length) return 'all';
  return threshold === 1 ? 'any' : String(threshold);
}

/** A policy as far as it is read. `free` are the names that no group has yet. */
type Draft = {
  logs: PolicyLog[];
  witnesses: PolicyWitness[];
  groups: PolicyGroup[];
  names: Set<string>;
  free: Set<string>;
  quorums: string[];
};

/** Reads a policy. Throws FormatError that names the line. Groups are not checked for cycles: they name earlier lines only. */
export function parsePolicy(text: string): TlogPolicy {
  if (text.length > MAX_POLICY_CHARACTERS) throw new FormatError('a policy is longer than 512 KiB');
  if (text !== '' && !text.endsWith('\n')) throw new FormatError('a policy does not end in a newline');
  const draft: Draft = {
    logs: [],
    witnesses: [],
    groups: [],
    names: new Set(),
    free: new Set(),
    quorums: [],
  };
  for (const [i, line] of text.split('\n').entries()) {
    try {
      readLine(draft, line);
    } catch (error) {
      if (error instanceof FormatError) throw new FormatError(`line ${i + 1} of a policy: ${error.message}`);
      throw error;
    }
  }
  const { logs, witnesses, groups, quorums } = draft;
  const [quorum, ...more] = quorums;
  if (quorum === undefined || more.length > 0) throw new FormatError('a policy needs one quorum line');
  return { logs, witnesses, groups, quorum: quorum === NONE ? undefined : quorum };
}

function readLine(draft: Draft, line: string): void {
  if (/[^\t\x20-\x7e\x80-\uffff]/.test(line)) throw new FormatError('it has a control character');
  const [keyword = '', ...words] = line.split(/[ \t]+/).filter((word) => word !== '');
  if (keyword === '' || keyword.startsWith('#')) return;
  const read = READERS.get(keyword);
  if (read === undefined) throw new FormatError('it is neither log, witness, group nor quorum');
  read(draft, words);
}

const READERS: ReadonlyMap<string, (draft: Draft, words: string[]) => void> = new Map([
  ['log', readLog],
  ['witness', readWitness],
  ['group', readGroup],
  ['quorum', readQuorum],
]);

function readLog({ logs }: Draft, [vkey = '', url, ...rest]: string[]): void {
  if (rest.length > 0) throw new FormatError('a log has a key and an address');
  const key = parseVerifierKey(vkey);
  if (key.type !== ED25519_NOTE_KEY && key.type !== ML_DSA_44_NOTE_KEY) {
    throw new FormatError('the key is not that of a log');
  }
  add(logs, { key, ...(url !== undefined && { url }) });
}

function readWitness(draft: Draft, [name = '', vkey = '', url, ...rest]: string[]): void {
  if (rest.length > 0) throw new FormatError('a witness has a name, a key and an address');
  const key = parseVerifierKey(vkey);
  if (key.type === ED25519_NOTE_KEY) throw new FormatError('the key is not that of a witness');
  define(draft, name);
  add(draft.witnesses, { name, key, ...(url !== undefined && { url }) });
}

function add<T extends { readonly key: NoteKey }>(items: T[], item: T): void {
  const isKnown = items.some(({ key }) => equalBytes(key.publicKey, item.key.publicKey));
  if (isKnown) throw new FormatError('its key is that of another line');
  if (items.length >= MAX_ITEMS) throw new FormatError(`there are more than ${MAX_ITEMS} of them`);
  items.push(item);
}

function readGroup(draft: Draft, [name = '', least = '', ...members]: string[]): void {
  const words: Record<string, number> = { any: 1, all: members.length };
  const threshold = Object.hasOwn(words, least) ? words[least] : Number(/^[1-9]\d{0,5}$/.exec(least)?.[0]);
  if (!(threshold !== undefined && threshold >= 1 && threshold <= members.length)) {
    throw new FormatError('a group needs any, all, or a number of its members');
  }
  for (const member of members) {
    if (!draft.free.delete(member)) {
      throw new FormatError('a member is not defined before, or is in a group already');
    }
  }
  if (draft.groups.length >= MAX_ITEMS) throw new FormatError(`there are more than ${MAX_ITEMS} of them`);
  define(draft, name);
  draft.groups.push({ name, threshold, members });
}

function readQuorum({ names, quorums }: Draft, [name = '', ...rest]: string[]): void {
  if (rest.length > 0 || !(name === NONE || names.has(name))) {
    throw new FormatError('the quorum is none, or a witness or group defined before');
  }
  quorums.push(name);
}

function define({ names, free }: Draft, name: string): void {
  if (name === '' || name === NONE || names.has(name)) throw new FormatError('its name is missing or taken');
  names.add(name);
  free.add(name);
}
