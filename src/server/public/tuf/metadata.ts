/** TUF metadata: making, signing, reading and checking it, for the service and its operator's commands. */
import { createHash } from 'node:crypto';
import { canonicalize } from '@tufjs/canonical-json';
import {
  Metadata,
  MetadataKind,
  type Root,
  Signature,
  type Snapshot,
  type Targets,
  type Timestamp,
} from '@tufjs/models';

/** An Ed25519 key that signs metadata: `publicKey` and signatures are raw. */
export type TufSigner = {
  readonly publicKey: Uint8Array;
  readonly sign: (data: Uint8Array) => Promise<Uint8Array>;
};

/** A file that clients fetch by its name. */
export type TufTarget = { readonly name: string; readonly content: string };

/** Who signs: the root keys sign root and targets, the online key snapshot and timestamp. */
export type TufKeys = {
  readonly rootKeys: readonly Uint8Array[];
  /** How many of the root keys must sign. */
  readonly threshold: number;
  readonly onlineKey: Uint8Array;
};

/** The metadata of one role. */
export type TufMetadata = {
  root: Metadata<Root>;
  targets: Metadata<Targets>;
  snapshot: Metadata<Snapshot>;
  timestamp: Metadata<Timestamp>;
};

/** A role of TUF; there are no delegated ones. */
export type TufRole = keyof TufMetadata;

/** The largest metadata or target: clients read no more than 500 KB of a root. */
const MAX_TUF_BYTES = 500_000;

/** Metadata that is not what it should be; the message continues a sentence that starts with its name. */
export class TufError extends Error {
  override readonly name = 'TufError';
}

const DAY_MS = 86_400_000;
const OFFLINE_DAYS = 365;
const ONLINE_DAYS = 7;

/** The id of a key in metadata: the SHA-256 of its canonical form. */
export function tufKeyId(publicKey: Uint8Array): string {
  return hashOf(canonicalize(keyJson(publicKey)));
}

/** The next version of a role other than root. The clock keeps it above versions that a restored backup has lost. */
export function nextVersion(version: number | undefined, nowMs: number): number {
  return Math.max((version ?? 0) + 1, Math.floor(nowMs / 1000));
}

/** Makes root metadata without signatures. It expires after a year. */
export function makeRoot(
  version: number,
  { rootKeys, threshold, onlineKey }: TufKeys,
  nowMs: number,
): TufMetadata['root'] {
  const offline = { keyids: rootKeys.map(tufKeyId), threshold };
  const online = { keyids: [tufKeyId(onlineKey)], threshold: 1 };
  return make(MetadataKind.Root, version, nowMs + OFFLINE_DAYS * DAY_MS, {
    consistent_snapshot: true,
    keys: Object.fromEntries([...rootKeys, onlineKey].map((key) => [tufKeyId(key), keyJson(key)])),
    roles: { root: offline, targets: offline, snapshot: online, timestamp: online },
  });
}

/** Makes targets metadata without signatures. It expires after a year. */
export function makeTargets(
  version: number,
  files: readonly TufTarget[],
  nowMs: number,
): TufMetadata['targets'] {
  const entries = files.map(({ name, content }) => [name, fileJson(content)]);
  return make(MetadataKind.Targets, version, nowMs + OFFLINE_DAYS * DAY_MS, {
    targets: Object.fromEntries(entries),
  });
}

/** Makes snapshot metadata of targets metadata as it is served, without signatures. It expires after a week. */
export function makeSnapshot(
  version: number,
  targets: TufMetadata['targets'],
  nowMs: number,
): TufMetadata['snapshot'] {
  return make(MetadataKind.Snapshot, version, nowMs + ONLINE_DAYS * DAY_MS, {
    meta: { 'targets.json': metaJson(targets) },
  });
}

/** Makes timestamp metadata of snapshot metadata as it is served, without signatures. It expires after a week. */
export function makeTimestamp(
  version: number,
  snapshot: TufMetadata['snapshot'],
  nowMs: number,
): TufMetadata['timestamp'] {
  return make(MetadataKind.Timestamp, version, nowMs + ONLINE_DAYS * DAY_MS, {
    meta: { 'snapshot.json': metaJson(snapshot) },
  });
}

/** Adds the signatures of keys. */
export async function signMetadata(
  metadata: TufMetadata[TufRole],
  signers: readonly TufSigner[],
): Promise<void> {
  const data = Buffer.from(canonicalize(metadata.signed.toJSON()));
  for (const { publicKey, sign } of signers) {
    const [keyID, sig] = [tufKeyId(publicKey), Buffer.from(await sign(data)).toString('hex')];
    metadata.signatures[keyID] = new Signature({ keyID, sig });
  }
}

/** The text of metadata as it is served. */
export function metadataText(metadata: TufMetadata[TufRole]): string {
  return JSON.stringify(metadata.toJSON());
}

/** Reads metadata. Does not check its signatures. Throws TufError. */
export function parseMetadata<R extends TufRole>(role: R, text: string): TufMetadata[R] {
  if (Buffer.byteLength(text) > MAX_TUF_BYTES) throw new TufError(`is larger than ${MAX_TUF_BYTES} bytes`);
  const metadata = fromJson(role, text);
  const { version, expires } = metadata.signed;
  if (!Number.isSafeInteger(version) || version < 1)
    throw new TufError('has a version that is not a positive integer');
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(expires) || Number.isNaN(Date.parse(expires))) {
    throw new TufError('has an expiry that is not a time of the form 2026-01-02T03:04:05Z');
  }
  return metadata;
}

/** Throws TufError unless enough of the keys that a root names for a role have signed its metadata. */
export function checkSigned(root: TufMetadata['root'], role: TufRole, metadata: TufMetadata[TufRole]): void {
  try {
    root.verifyDelegate(role, metadata);
  } catch {
    const { threshold } = root.signed.roles[role] ?? { threshold: 1 };
    throw new TufError(
      `is not signed by ${threshold} of the ${role} keys of root version ${root.signed.version}`,
    );
  }
}

/** Throws TufError unless targets metadata names exactly these files, each with its length and SHA-256. */
export function checkTargets({ signed }: TufMetadata['targets'], files: readonly TufTarget[]): void {
  const named = Object.entries(signed.targets).map(([name, file]) => [name, file.toJSON()]);
  const given = files.map(({ name, content }) => [name, fileJson(content)]);
  if (
    canonicalize(Object.fromEntries(named)) !== canonicalize(Object.fromEntries(given)) ||
    named.length !== files.length
  ) {
    throw new TufError('does not name the given files with their length and SHA-256');
  }
  if (signed.delegations !== undefined) throw new TufError('delegates to other roles');
}

/** The public keys that a root names for a role, by id. */
export function keyIdsOf({ signed }: TufMetadata['root'], role: TufRole): readonly string[] {
  return signed.roles[role]?.keyIDs ?? [];
}

/** The raw public keys that a root names for a role. Throws TufError if one is not Ed25519 as `makeRoot` writes it. */
export function publicKeysOf(root: TufMetadata['root'], role: TufRole): Uint8Array[] {
  return keyIdsOf(root, role).map((id) => {
    const bytes = Buffer.from(root.signed.keys[id]?.keyVal.public ?? '', 'hex');
    if (bytes.length !== 32 || tufKeyId(bytes) !== id)
      throw new TufError(`has a ${role} key that is not Ed25519`);
    return bytes;
  });
}

/** The path of a target below the repository's URL. */
export function targetPath({ name, content }: TufTarget): string {
  return `targets/${hashOf(content)}.${name}`;
}

function keyJson(publicKey: Uint8Array) {
  return {
    keytype: 'ed25519',
    scheme: 'ed25519',
    keyval: { public: Buffer.from(publicKey).toString('hex') },
  };
}

function fileJson(content: string) {
  return { length: Buffer.byteLength(content), hashes: { sha256: hashOf(content) } };
}

function metaJson(metadata: TufMetadata[TufRole]) {
  return { ...fileJson(metadataText(metadata)), version: metadata.signed.version };
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function make<R extends TufRole>(
  role: R | `${R}`,
  version: number,
  expiresMs: number,
  content: object,
): TufMetadata[R] {
  const expires = new Date(expiresMs).toISOString().replace(/\.\d+Z$/, 'Z');
  const signed = { _type: role, spec_version: '1.0.31', version, expires, ...content };
  return fromJson(role as R, JSON.stringify({ signed, signatures: [] }));
}

const READERS: { [R in TufRole]: (json: Parameters<typeof Metadata.fromJSON>[1]) => TufMetadata[R] } = {
  root: (json) => Metadata.fromJSON(MetadataKind.Root, json),
  targets: (json) => Metadata.fromJSON(MetadataKind.Targets, json),
  snapshot: (json) => Metadata.fromJSON(MetadataKind.Snapshot, json),
  timestamp: (json) => Metadata.fromJSON(MetadataKind.Timestamp, json),
};

function fromJson<R extends TufRole>(role: R, text: string): TufMetadata[R] {
  try {
    return READERS[role](JSON.parse(text));
  } catch (error) {
    throw new TufError(`is not ${role} metadata of TUF: ${(error as Error).message}`);
  }
}
