import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { toHex, utf8 } from '../../../proof/bytes/encoding.js';
import { FormatError } from '../../../proof/bytes/format-error.js';
import { sha256 } from '../../../proof/bytes/primitives.js';
import { parseJsonText } from '../../../proof/verify/read/json-text.js';
import { readTrust } from '../../../proof/verify/trust.js';
import { printable } from '../../../protocol/printable.js';
import { fetchTrustRoots } from '../inputs/fetch-published.js';
import { nameOf } from '../inputs/input-files.js';
import { type Loadable, problemState } from '../inputs/loading.js';
import { findEmbeddedRoots } from '../place.js';

/** Whose trust roots they are: those of the server, those inside the page, or a copy of the reader's own. */
export type RootsOrigin =
  | { readonly kind: 'server'; readonly url: string }
  | { readonly kind: 'page'; readonly from: string; readonly savedAt: string }
  | { readonly kind: 'own'; readonly name: string };

/** Trust roots that can be read, and how many keys of each kind they name. */
export type Roots = {
  readonly document: unknown;
  readonly origin: RootsOrigin;
  readonly sha256: string;
  readonly counts: readonly (readonly [number, string])[];
};

export type TrustRootsState = {
  readonly roots: Loadable<Roots>;
  /** Takes the reader's own copy. */
  giveOwn(file: File): void;
  /** Goes back to those that the page came with, or tries them again. */
  reset(): void;
};

const MAX_BYTES = 4 * 1024 * 1024;

/** The trust roots: those inside the page or else the server's, until the reader gives others. */
export function useTrustRoots(): TrustRootsState {
  const [roots, setRoots] = useState<Loadable<Roots>>({ state: 'loading', name: 'trust roots' });
  const latest = useRef<unknown>(undefined);
  const load = useCallback((read: () => Promise<Roots>) => {
    latest.current = read;
    // Those of a slow server do not take the place of a copy that was given meanwhile.
    const set = (next: Loadable<Roots>) => latest.current === read && setRoots(next);
    set({ state: 'loading', name: 'trust roots' });
    read().then(
      (value) => set({ state: 'ready', value }),
      (error) => set(problemState(error, 'The trust roots cannot be read.')),
    );
  }, []);
  const reset = useCallback(() => load(readDefault), [load]);
  useEffect(reset, [reset]);
  return { roots, reset, giveOwn: (file) => load(() => readOwn(file)) };
}

async function readDefault(): Promise<Roots> {
  const embedded = findEmbeddedRoots();
  if (embedded !== undefined) {
    const { text, origin, savedAt } = embedded;
    return parseRoots(text, { kind: 'page', from: printable(origin), savedAt });
  }
  const { text, url } = await fetchTrustRoots();
  return parseRoots(text, { kind: 'server', url });
}

async function readOwn(file: File): Promise<Roots> {
  const name = nameOf(file);
  if (file.size > MAX_BYTES) throw new FormatError(`${name} is too large for trust roots.`);
  return parseRoots(await file.text(), { kind: 'own', name });
}

function parseRoots(text: string, origin: RootsOrigin): Roots {
  const document = parseDocument(text);
  const { trust, problems } = readTrust(document);
  if (trust === undefined) {
    const what = problems.map(({ path, message }) => `${path || 'the document'} ${message}`).join('; ');
    throw new FormatError(`These are no trust roots that can be used: ${printable(what).slice(0, 500)}.`);
  }
  return {
    document,
    origin,
    sha256: toHex(sha256(utf8(text))),
    counts: [
      [trust.logs.length, 'keys of logs'],
      [trust.dsseKeys.length, 'keys that sign statements'],
      [trust.authorities.length, 'chains of time-stamping authorities'],
      [trust.cosigners.length, 'keys of cosigning witnesses'],
      [trust.calendars.length, 'OpenTimestamps witnesses'],
      [trust.contracts.length, 'contracts on blockchains'],
    ],
  };
}

function parseDocument(text: string): unknown {
  try {
    return parseJsonText(text, MAX_BYTES);
  } catch (error) {
    const reason = error instanceof FormatError ? error.message : 'cannot be read';
    throw new FormatError(`The text of the trust roots ${reason}.`);
  }
}
