import type { MessageInitShape } from '@bufbuild/protobuf';
import type { PublishTufRequestSchema, Tuf } from '../../../../gen/attestation/admin/v1/tuf_pb.js';
import {
  checkSigned,
  keyIdsOf,
  makeRoot,
  makeTargets,
  metadataText,
  nextVersion,
  parseMetadata,
  publicKeysOf,
  signMetadata,
  TufError,
  type TufKeys,
  type TufMetadata,
  type TufSigner,
  tufKeyId,
} from '../../../server/public/tuf/metadata.js';
import { UsageError } from '../../cli.js';
import { type RootKey, signersOf } from './key-files.js';

/** What an operator signs: the targets, and with `keys` a new version of root, which the keys of both versions sign. */
export type Signing = {
  root: TufMetadata['root'] | undefined;
  keys: TufKeys | undefined;
  signers: readonly TufSigner[];
};

/** What is to be published. */
export type Publication = MessageInitShape<typeof PublishTufRequestSchema>;

/** A root is renewed when targets are published in its last half year. */
const RENEW_BEFORE_MS = 183 * 86_400_000;

/**
 * Reads the newest root of a repository, which may only be trusted as the keys at hand have signed it. Throws UsageError if
 * one of these keys is not of that root, and Error if the root is not signed.
 */
export function readSignedRoot(tuf: Tuf, keys: readonly RootKey[]): TufMetadata['root'] {
  if (tuf.root === '') throw new Error('there is no TUF repository: make one with attest tuf init');
  try {
    const root = parseMetadata('root', tuf.root);
    const ids = keyIdsOf(root, 'root');
    const unknown = keys.find(({ publicKey }) => !ids.includes(tufKeyId(publicKey)));
    if (unknown !== undefined) {
      throw new UsageError(
        `${unknown.path} is not a key of root version ${root.signed.version}, which are ${ids.join(', ')}`,
      );
    }
    checkSigned(root, 'root', root);
    return root;
  } catch (error) {
    throw error instanceof TufError ? new Error(`the root that the service has ${error.message}`) : error;
  }
}

/** The keys of a root, of which some are replaced. */
export function replaceKeys(root: TufMetadata['root'], changed: Partial<TufKeys>): TufKeys {
  const [onlineKey] = publicKeysOf(root, 'timestamp');
  if (onlineKey === undefined) throw new Error('the root that the service has names no online key');
  const threshold = root.signed.roles.root?.threshold ?? 1;
  return { rootKeys: publicKeysOf(root, 'root'), threshold, onlineKey, ...changed };
}

/** Whether a root is to be renewed with the next targets. */
export function isRootDue({ signed }: TufMetadata['root'], now: Date): boolean {
  return Date.parse(signed.expires) - now.getTime() < RENEW_BEFORE_MS;
}

/** Signs what is to be published: the files as the service has them now. */
export async function signPublication(
  tuf: Tuf,
  { root, keys, signers }: Signing,
  now: Date,
): Promise<Publication> {
  const version = (root?.signed.version ?? 0) + 1;
  const newRoot = keys === undefined ? undefined : makeRoot(version, keys, now.getTime());
  if (newRoot !== undefined) await signMetadata(newRoot, signers);
  const before = tuf.roles.find(({ name }) => name === 'targets')?.version;
  const targets = makeTargets(nextVersion(Number(before ?? 0n), now.getTime()), tuf.current, now.getTime());
  const inForce = newRoot ?? root;
  const ids = inForce === undefined ? [] : keyIdsOf(inForce, 'targets');
  await signMetadata(
    targets,
    signers.filter(({ publicKey }) => ids.includes(tufKeyId(publicKey))),
  );
  const files = tuf.current.map(({ name, content }) => ({ name, content }));
  return { root: newRoot === undefined ? '' : metadataText(newRoot), targets: metadataText(targets), files };
}

/** The keys that sign a new root: those of the one before, and its own. */
export function allSigners(keys: readonly RootKey[], newKeys: readonly RootKey[]): TufSigner[] {
  const all = signersOf([...keys, ...newKeys]);
  return all.filter(
    ({ publicKey }, i) => all.findIndex((other) => tufKeyId(other.publicKey) === tufKeyId(publicKey)) === i,
  );
}
