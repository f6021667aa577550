/**
 * Publishing of TUF metadata: by the operator, who signs root and targets, and renewal of what the online key signs.
 * Commit point: the transaction, which stores all of it and holds the lock on the repository. A crash leaves what was there.
 */
import type { Pool, Sql } from '../../database/connect.js';
import { readDatabaseMs } from '../../database/session.js';
import { KeyNotHeldError } from '../../keys/signing-error.js';
import type { TufKey } from '../../keys/tuf-keys.js';
import {
  checkSigned,
  checkTargets,
  keyIdsOf,
  makeSnapshot,
  makeTimestamp,
  nextVersion,
  parseMetadata,
  signMetadata,
  TufError,
  type TufMetadata,
  type TufTarget,
  tufKeyId,
} from './metadata.js';
import {
  deleteOldSnapshots,
  findNewest,
  insertMetadata,
  insertTarget,
  lockTuf,
  type Newest,
} from './store.js';

/** What an operator publishes: root metadata if it changes, targets metadata, and the files that it names. */
export type Publication = { root: string | undefined; targets: string; files: readonly TufTarget[] };

/** A part of a publication that is wrong; the message continues a sentence that starts with the part's name. */
export class PublicationError extends TufError {
  constructor(
    readonly part: 'root' | 'targets',
    message: string,
  ) {
    super(message);
  }
}

/** A publication that was signed from metadata other than the newest. */
export class TufConflict extends Error {}

/** Snapshot and timestamp live for a week, and are renewed every day. */
const RENEW_BEFORE_MS = 6 * 86_400_000;

type OfflineMetadata = Pick<TufMetadata, 'root' | 'targets'>;

/**
 * Publishes an operator's metadata, within a transaction. Throws PublicationError if it is wrong, TufConflict if it does not
 * follow what is published, and KeyNotHeldError if this process does not hold the online key.
 */
export async function publishTuf(
  tx: Sql,
  keys: readonly TufKey[],
  publication: Publication,
): Promise<OfflineMetadata> {
  await lockTuf(tx);
  const [newest, nowMs] = [await findNewest(tx), await readDatabaseMs(tx)];
  const metadata = checkPublication(publication, newest, nowMs);
  if (publication.root !== undefined) await insertMetadata(tx, 'root', metadata.root);
  await insertMetadata(tx, 'targets', metadata.targets);
  for (const file of publication.files) await insertTarget(tx, file);
  await signOnline(tx, keys, { newest, metadata, nowMs });
  return metadata;
}

/**
 * Renews snapshot and timestamp if they expire within six days, by the database's clock. Of several processes at once, one
 * does. Throws a KeyNotHeldError if this process does not hold the online key.
 */
export async function renewTuf(pool: Pool, keys: readonly TufKey[]): Promise<boolean> {
  return pool.begin(async (tx) => {
    await lockTuf(tx);
    const [newest, nowMs] = [await findNewest(tx), await readDatabaseMs(tx)];
    if (newest === undefined || Date.parse(newest.timestamp.signed.expires) - nowMs > RENEW_BEFORE_MS)
      return false;
    await signOnline(tx, keys, { newest, metadata: newest, nowMs });
    return true;
  });
}

/** The key of a process that a root names for snapshot and timestamp. Throws a KeyNotHeldError if it is not there. */
function findOnlineKey(keys: readonly TufKey[], root: TufMetadata['root']): TufKey {
  const [id] = keyIdsOf(root, 'timestamp');
  const key = keys.find(({ publicKey }) => tufKeyId(publicKey) === id);
  if (key === undefined)
    throw new KeyNotHeldError(`TUF_KEY_FILE does not hold the online key ${id} of the TUF repository`);
  return key;
}

type Signing = { newest: Newest | undefined; metadata: OfflineMetadata; nowMs: number };

async function signOnline(
  tx: Sql,
  keys: readonly TufKey[],
  { newest, metadata, nowMs }: Signing,
): Promise<void> {
  const key = findOnlineKey(keys, metadata.root);
  const snapshot = makeSnapshot(nextVersion(newest?.snapshot.signed.version, nowMs), metadata.targets, nowMs);
  await signMetadata(snapshot, [key]);
  const timestamp = makeTimestamp(nextVersion(newest?.timestamp.signed.version, nowMs), snapshot, nowMs);
  await signMetadata(timestamp, [key]);
  await insertMetadata(tx, 'snapshot', snapshot);
  await insertMetadata(tx, 'timestamp', timestamp);
  await deleteOldSnapshots(tx);
}

function checkPublication(
  publication: Publication,
  newest: Newest | undefined,
  nowMs: number,
): OfflineMetadata {
  const root = inPart('root', () => checkRoot(publication.root, newest, nowMs));
  const targets = inPart('targets', () => {
    const metadata = parseMetadata('targets', publication.targets);
    checkSigned(root, 'targets', metadata);
    checkTargets(metadata, publication.files);
    checkExpiry(metadata, nowMs);
    return metadata;
  });
  if (newest !== undefined && targets.signed.version <= newest.targets.signed.version) {
    throw new TufConflict(`version ${newest.targets.signed.version} of targets is published`);
  }
  return { root, targets };
}

/** Checks a new root against the one before it, which must have signed it as well. */
function checkRoot(text: string | undefined, newest: Newest | undefined, nowMs: number): TufMetadata['root'] {
  if (text === undefined) {
    if (newest === undefined) throw new TufError('is missing: there is no repository yet');
    return newest.root;
  }
  const root = parseMetadata('root', text);
  const version = (newest?.root.signed.version ?? 0) + 1;
  if (root.signed.version !== version) {
    throw new TufConflict(`the next version of root is ${version}, not ${root.signed.version}`);
  }
  if (newest !== undefined) checkSigned(newest.root, 'root', root);
  checkSigned(root, 'root', root);
  checkExpiry(root, nowMs);
  checkRoles(root);
  return root;
}

/** The online key is one, and signs nothing but snapshot and timestamp. */
function checkRoles(root: TufMetadata['root']): void {
  if (!root.signed.consistentSnapshot) throw new TufError('has no consistent snapshots');
  const [online, ...others] = keyIdsOf(root, 'timestamp');
  if (online === undefined || others.length > 0 || keyIdsOf(root, 'snapshot').join() !== online) {
    throw new TufError('does not name one key for both snapshot and timestamp');
  }
  if ([...keyIdsOf(root, 'root'), ...keyIdsOf(root, 'targets')].includes(online)) {
    throw new TufError('names the online key for root or targets');
  }
}

function checkExpiry({ signed }: TufMetadata['root'] | TufMetadata['targets'], nowMs: number): void {
  if (Date.parse(signed.expires) <= nowMs) throw new TufError('has expired');
}

function inPart<T>(part: 'root' | 'targets', check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw error instanceof TufError ? new PublicationError(part, error.message) : error;
  }
}
