import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { hashArtifact } from '../../../client/hash.js';
import { readFragment } from './bundle-link.js';
import { fetchPublicBundle } from './fetch-published.js';
import {
  type Artifact,
  type GivenBundle,
  nameOf,
  parseDigest,
  readBundleFile,
  sortDropped,
} from './input-files.js';
import { EMPTY, type Loadable, problemState } from './loading.js';

/** The file and the bundle that were given, and how they are given. */
export type Inputs = {
  readonly artifact: Loadable<Artifact>;
  readonly bundle: Loadable<GivenBundle>;
  /** Why what was dropped could not be taken. */
  readonly dropProblem: string | undefined;
  giveArtifact(file: File): void;
  giveDigest(text: string): void;
  giveBundle(file: File): void;
  giveId(id: string): void;
  giveDropped(files: readonly File[]): void;
  clearArtifact(): void;
  clearBundle(): void;
};

/** Holds the inputs. A newer one ends the reading of the one before. */
export function useInputs(): Inputs {
  const [artifact, artifactSlot] = useSlot<Artifact>();
  const [bundle, bundleSlot] = useSlot<GivenBundle>();
  const [dropProblem, setDropProblem] = useState<string>();
  const giveArtifact = (file: File) => artifactSlot(nameOf(file), (report) => hashFile(file, report));
  const giveBundle = (file: File) => bundleSlot(nameOf(file), () => readBundleFile(file));
  const giveId = (id: string) => bundleSlot(id, () => fetchPublicBundle(id));
  useLink(bundleSlot);
  return {
    artifact,
    bundle,
    dropProblem,
    giveArtifact,
    giveDigest: (text) =>
      artifactSlot('', async () => ({ name: 'a file with this SHA-256', sha256: parseDigest(text) })),
    giveBundle,
    giveId,
    giveDropped: (files) => {
      setDropProblem(undefined);
      sortDropped(files).then(
        (dropped) => {
          if (dropped.artifact) giveArtifact(dropped.artifact);
          if (dropped.bundle) giveBundle(dropped.bundle);
        },
        (error) => setDropProblem(messageOf(problemState(error, 'The files cannot be read.'))),
      );
    },
    clearArtifact: () => artifactSlot(),
    clearBundle: () => bundleSlot(),
  };
}

type Report = { signal: AbortSignal; progress: (part: number) => void };
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
    if (read === undefined) return void set(EMPTY);
    set({ state: 'loading', name });
    read({ signal, progress: (progress) => set({ state: 'loading', name, progress }) }).then(
      (ready) => set({ state: 'ready', value: ready }),
      (error) => set(problemState(error, `${name} cannot be read. Was it moved or changed meanwhile?`)),
    );
  }, []);
  return [value, slot];
}

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
  return { name: nameOf(file), size: file.size, sha256: await hashArtifact(file, { signal, onBytes }) };
}

function messageOf(state: Loadable<never>): string | undefined {
  return state.state === 'problem' ? state.message : undefined;
}
