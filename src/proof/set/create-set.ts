/** Makes the text of a set file, entry by entry. */
import { toHex } from '../bytes/encoding.js';
import { appendLeaf, type Frontier, foldRight } from '../log/merkle.js';
import { checkEntry, entryLeaf, entryText, MAX_ENTRIES, type SetEntry, withheldText } from './entry.js';
import { headDigest, headText, type NotBefore, type SetHead } from './head.js';
import { comparePaths, printablePath } from './path.js';
import { SetError } from './set-error.js';

/** The media type of set files. */
export const SET_MEDIA_TYPE = 'application/vnd.attestation-service.set.v1+json';

/** The first line. The head comes last, because it is known when all entries are: so one pass writes and one reads a file. */
const BEGIN = `{"media_type":"${SET_MEDIA_TYPE}","entries":[\n`;

/** A set that is being made. Holds one hash per full subtree, not the entries. */
type SetBuilder = {
  /**
   * Adds the next entry in the order of paths (see comparePaths). Returns the text to append to the file. Throws SetError,
   * and adds nothing, if the entry or its path is not valid, not after the last one, or one too many.
   */
  add(entry: SetEntry): string;
  /** Adds an entry that is withheld by its leaf, 32 bytes; as above. */
  withhold(leaf: Uint8Array): string;
  /** Ends the set. Returns the last text of the file, and what to attest. Throws SetError if the set has no entries. */
  end(notBefore?: NotBefore): FinishedSet;
};

/** `headSha256`, in hex, is the SHA-256 of `headText`, the canonical JSON of the head, and what is to be attested. */
type FinishedSet = {
  readonly text: string;
  readonly head: SetHead;
  readonly headText: string;
  readonly headSha256: string;
};

/** Starts a set file. */
export function createSet(): SetBuilder {
  const frontier: Frontier = { size: 0, subtrees: [] };
  let last: string | undefined;
  const append = (leaf: Uint8Array, text: string) => {
    if (frontier.size === MAX_ENTRIES) {
      throw new SetError('set.shape', `the set has more than ${MAX_ENTRIES} entries`);
    }
    const before = frontier.size === 0 ? BEGIN : ',\n';
    appendLeaf(frontier, leaf);
    return before + text;
  };
  return {
    add: (entry) => {
      checkEntry(entry);
      checkOrder(entry.path, last);
      const text = append(entryLeaf(entry), entryText(entry));
      last = entry.path;
      return text;
    },
    withhold: (leaf) => append(leaf, withheldText(toHex(leaf))),
    end: (notBefore) => {
      if (frontier.size === 0) throw new SetError('set.shape', 'the set has no entries');
      const root = toHex(foldRight(frontier.subtrees));
      const head = { entries: frontier.size, root, ...(notBefore && { notBefore }) };
      const text = headText(head);
      return { text: `\n],"head":${text}}\n`, head, headText: text, headSha256: headDigest(text) };
    },
  };
}

/** Throws SetError unless `path` comes after `last`, the path of the nearest entry before that is not withheld. */
export function checkOrder(path: string, last: string | undefined): void {
  if (last === undefined) return;
  const order = comparePaths(last, path);
  if (order === 0) throw new SetError('set.shape', `(${printablePath(path)}) occurs twice`, { path });
  if (order > 0) {
    const message = `(${printablePath(path)}) is not sorted: it is after ${printablePath(last)}`;
    throw new SetError('set.shape', message, { path });
  }
}
