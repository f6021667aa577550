import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { hashArtifact } from '../../../client/hash.js';
import { type GivenFolder, hashFolder } from '../folder/hash-folder.js';
import type { FolderSource } from '../folder/list-folder.js';
import { readFragment } from './bundle-link.js';
import { fetchPublicBundle } from './fetch-published.js';
import {
  type Artifact,
  findKind,
  type GivenBundle,
  type GivenSet,
  nameOf,
  parseDigest,
  readBundleFile,
  sortDropped,
} from './input-files.js';
import { EMPTY, type Loadable, problemState, type Report } from './loading.js';
import { readPieces } from './read-pieces.js';

/** What was given, and how it is given. */
export type Inputs = {
  readonly artifact: Loadable<Artifact | GivenFolder>;
  readonly bundle: Loadable<GivenBundle>;
  readonly set: Loadable<GivenSet>;
  /** Why what was dropped could not be taken. */
  readonly dropProblem: string | undefined;
  giveArtifact(given: File | FolderSource): void;
  giveDigest(text: string): void;
  /** Takes a bundle or a set file: each for what it is, anything else for what it was given as. */
  giveProof(file: File, as: 'bundle' | 'set'): void;
  giveId(id: string): void;
  giveDropped(dropped: readonly (File | FolderSource)[]): void;
  clearArtifact(): void;
  clearBundle(): void;
  clearSet(): void;
};

/** Holds the inputs. A newer one ends the reading of the one before. */
export function useInputs(): Inputs {
  const [artifact, artifactSlot] = useSlot<Artifact | GivenFolder>();
  const [bundle, bundleSlot] = useSlot<GivenBundle>();
  const [set, setSlot] = useSlot<GivenSet>();
  const [dropProblem, setDropProblem] = useState<string>();
  const giveArtifact = (given: File | FolderSource) =>
    given instanceof File
      ? artifactSlot(nameOf(given), (report) => hashFile(given, report))
      : artifactSlot(given.name, (report) => hashFolder(given, report));
  const giveBundle = (file: File) => bundleSlot(nameOf(file), () => readBundleFile(file));
  const giveSet = (file: File) => setSlot(nameOf(file), async () => ({ name: nameOf(file), file }));
  const giveProof = async (file: File, as: 'bundle' | 'set') => {
    const found = await findKind(file);
    const kind = found === 'artifact' ? as : found;
    if (kind === 'set') giveSet(file);
    else giveBundle(file);
  };
  const giveId = (id: string) => bundleSlot(id, () => fetchPublicBundle(id));
  useLink(bundleSlot);
  return {
    artifact,
    bundle,
    set,
    dropProblem,
    giveArtifact,
    giveDigest: (text) =>
      artifactSlot('', async () => ({ name: 'a file with this SHA-256', sha256: parseDigest(text) })),
    giveProof,
    giveId,
    giveDropped: (dropped) => {
      setDropProblem(undefined);
      sortDropped(dropped).then(
        (sorted) => {
          if (sorted.artifact) giveArtifact(sorted.artifact);
          if (sorted.bundle) giveBundle(sorted.bundle);
          if (sorted.set) giveSet(sorted.set);
        },
        (error) => setDropProblem(messageOf(problemState(error, 'The files cannot be read.'))),
      );
    },
    clearArtifact: () => artifactSlot(),
    clearBundle: () => bundleSlot(),
    clearSet: () => setSlot(),
  };
}

/** Fills an input with what `read` returns; empties it without one. */
type Slot<T> = (name?: string, read?: (report: Report) => Promise<T>) => void;

function useSlot<T>(): [Loadable<T>, Slot<T>] {
  const [value, setValue] = useState<Loadable<T>>(EMPTY);
  const current = useRef<AbortController | undefined>(undefined);
  const slot = useCallback<Slot<T>>((name = '', read) => {
    current.current?.abort();
    const controller = new AbortController();
    current.current = controller;
    const { signal } = controller;
    const set = (next: Loadable<T>) => signal.aborted || setValue(next);
    const settle = (next: Loadable<T>) => {
      set(next);
      // Nothing that still runs changes what was found.
      controller.abort();
    };
    if (read === undefined) return void set(EMPTY);
    set({ state: 'loading', name });
    let shownAt = 0;
    const progress = (part: number, detail?: string) => {
      if (performance.now() - shownAt < MIN_SHOWN_MS) return;
      shownAt = performance.now();
      set({ state: 'loading', name, progress: part, ...(detail !== undefined && { detail }) });
    };
    read({ signal, progress }).then(
      (ready) => settle({ state: 'ready', value: ready }),
      (error) => settle(problemState(error, `${name} cannot be read. Was it moved or changed meanwhile?`)),
    );
  }, []);
  return [value, slot];
}

/** How often progress is shown: each time costs the page a rendering. */
const MIN_SHOWN_MS = 100;

/** Takes what the page's address carries, now and when it changes. */
function useLink(bundleSlot: Slot<GivenBundle>): void {
  useEffect(() => {
    const take = async () => {
      const { hash } = location;
      if (hash.length < 2) return;
      bundleSlot('link', async () => {
        const target = await readFragment(hash);
        if (target?.kind === 'id') return fetchPublicBundle(target.id);
        return { name: 'bundle in the link', bytes: target?.bundle ?? new Uint8Array() };
      });
    };
    void take();
    addEventListener('hashchange', take);
    return () => removeEventListener('hashchange', take);
  }, [bundleSlot]);
}

async function hashFile(file: File, { signal, progress }: Report): Promise<Artifact> {
  let done = 0;
  const onBytes = (bytes: number) => {
    done += bytes;
    progress(done / file.size);
  };
  return {
    name: nameOf(file),
    size: file.size,
    sha256: await hashArtifact(readPieces(file, signal), { onBytes }),
  };
}

function messageOf(state: Loadable<never>): string | undefined {
  return state.state === 'problem' ? state.message : undefined;
}
