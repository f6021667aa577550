/**
 * Trust roots, the TUF repository and the verify page in LOG_STORAGE. A file that is replaced is read from the tables after the version that
 * it replaces was read from the storage: a writer that stalls between does not undo a newer one.
 */
import { createHash } from 'node:crypto';
import type { FileKind } from '../public-files.js';
import { POLICIES, POLICY, ROOTS, TRUST_ROOTS, TRUSTED_ROOTS, tufFileKind } from '../public-files.js';
import { createTrustRootsReader } from '../trust-roots.js';
import { findTufFiles, listTufFiles } from '../tuf/store.js';
import { addFile, replaceFile, type StorageDeps } from './log-storage.js';

const TIMESTAMP = 'timestamp.json';

/** A file of the verify page. */
type PageFile = { readonly name: string; readonly kind: FileKind; readonly content: Uint8Array };

/** What is written besides the logs: trust roots with the log's public address, and the verify page. */
export type RootsSources = {
  verifyUrl: () => string;
  /** The document is written after the assets that it names. */
  verifyPage: { readonly document: PageFile; readonly assets: readonly PageFile[] };
};

type Make = () => Promise<string | Uint8Array | undefined>;

/** Writes files that have changed since it last wrote them, or that the storage lacks. */
export type RootsStorer = {
  /** Writes trust_roots.json: before each checkpoint, whose entries may be signed by a new key. */
  storeTrustRoots(): Promise<void>;
  /** Writes all of them. */
  storeAll(): Promise<void>;
};

/** Creates a storer. */
export function createRootsStorer(
  deps: StorageDeps,
  { verifyUrl, verifyPage: { document, assets } }: RootsSources,
): RootsStorer {
  /** By name the SHA-256 of what the storage had when this process last looked. */
  const known = new Map<string, string>();
  const added = new Set<string>();
  const add = async (name: string, kind: FileKind, make: Make) => {
    if (added.has(name)) return;
    const content = await make();
    if (content !== undefined) await addFile(deps, name, kind, content);
    added.add(name);
  };
  const update = async (name: string, kind: FileKind, make: Make) => {
    const content = await make();
    if (content === undefined || known.get(name) === sha256Hex(content)) return;
    const stored = await deps.storage.store.read(deps.storage.nameOf(name), deps.signal);
    const current = (await make()) ?? content;
    const hash = sha256Hex(current);
    const isThere =
      stored?.sha256 === hash || (await replaceFile(deps, name, { kind, content: current, over: stored }));
    if (isThere) known.set(name, hash);
  };
  const roots = () => createTrustRootsReader(deps.pool, verifyUrl, Date.now);
  const storeTrustRoots = () =>
    update(TRUST_ROOTS.slice(1), ROOTS, async () => (await roots().read()).json().bytes);
  const storeAll = async () => {
    await storeTrustRoots();
    for (const { path, environment } of TRUSTED_ROOTS)
      await update(path.slice(1), ROOTS, async () => JSON.stringify(await roots().readSigstore(environment)));
    for (const { path, environment } of POLICIES)
      await update(path.slice(1), POLICY, () => roots().readLogPolicy(environment));
    const read = async (name: string) => (await findTufFiles(deps.pool, [name])).get(name);
    for (const name of await listTufFiles(deps.pool))
      if (name !== TIMESTAMP) await add(`tuf/${name}`, tufFileKind(name), () => read(name));
    // The timestamp names a snapshot, which has to be there.
    await update(`tuf/${TIMESTAMP}`, tufFileKind(TIMESTAMP), () => read(TIMESTAMP));
    for (const { name, kind, content } of assets) await add(name, kind, async () => content);
    await update(document.name, document.kind, async () => document.content);
  };
  return { storeTrustRoots, storeAll };
}

function sha256Hex(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
