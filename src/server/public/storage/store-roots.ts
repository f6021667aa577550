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

/** Creates what writes the files that have changed since it last ran, or that the storage lacks. */
export function createRootsStorer(
  deps: StorageDeps,
  { verifyUrl, verifyPage: { document, assets } }: RootsSources,
): () => Promise<void> {
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
  return async () => {
    const roots = () => createTrustRootsReader(deps.pool, verifyUrl, Date.now);
    await update(TRUST_ROOTS.slice(1), ROOTS, async () => (await roots().read()).json().bytes);
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
}

function sha256Hex(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
