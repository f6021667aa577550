/**
 * Reads set files in one pass and in bounded memory. A file is JSON in the lines that createSet writes, and other JSON is
 * rejected: it would take a streaming reader of JSON beside the strict one, and each difference of the two would be a
 * difference of verdicts.
 */

import { fromHex } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { equalBytes } from '../bytes/primitives.js';
import { appendLeaf, type Frontier, foldRight, type OnNode } from '../log/merkle.js';
import { parseJsonText } from '../verify/read/json-text.js';
import { isBounded } from '../verify/read/read-json.js';
import { checkOrder } from './create-set.js';
import {
  entryLeaf,
  entryText,
  MAX_ENTRIES,
  readEntry,
  readWithheld,
  type SetEntry,
  withheldText,
} from './entry.js';
import { joinMembers, type Members, readFirstLine, readLastLine } from './frame.js';
import { readHead, type SetHead } from './head.js';
import { MAX_LINE_BYTES, type Pieces, readLines } from './lines.js';
import { SetError, unsupported } from './set-error.js';

/** An entry as read; one that is withheld is its leaf alone. */
export type SetItem = {
  /** Its place in the tree, from 0. */
  readonly index: number;
  /** Its leaf, 32 bytes. */
  readonly leaf: Uint8Array;
  readonly entry?: SetEntry;
};

/** A set that was read to its end: its head is that of its entries. */
export type SetSummary = {
  readonly head: SetHead;
  /** SHA-256 of the head in lower-case hex: what must have been attested. */
  readonly headSha256: string;
  /** Number of entries that are withheld. */
  readonly withheld: number;
  /** JSON pointers to members of the file that this version does not know. Nothing is claimed from them. */
  readonly ignored: readonly string[];
};

/** A set that is being read, once. */
type SetReading = {
  /** The entries in order. Nothing is known of them until `finish` returns. Throws SetError with line and path. */
  readonly items: AsyncIterable<SetItem>;
  /** Reads what is left. Throws SetError, or what the pieces throw; an Error if the reading of items was broken off. */
  finish(): Promise<SetSummary>;
};

/**
 * Reads a set file, given as bytes in any pieces. `onNode` is called with the nodes of the tree: those above an item after
 * it was taken, and each before its parent.
 */
export function readSet(pieces: Pieces, onNode?: OnNode): SetReading {
  let summary: SetSummary | undefined;
  const items = readItems(pieces, onNode, (read) => {
    summary = read;
  });
  return {
    items,
    finish: async () => {
      for await (const _ of items);
      if (summary === undefined) throw new Error('the set was not read to its end');
      return summary;
    },
  };
}

async function* readItems(
  pieces: Pieces,
  onNode: OnNode | undefined,
  end: (summary: SetSummary) => void,
): AsyncGenerator<SetItem> {
  const frontier: Frontier = { size: 0, subtrees: [] };
  let [first, last]: (Members | undefined)[] = [];
  let [line, withheld] = [0, 0];
  let before: Before = { hasComma: true };
  for await (const text of readLines(pieces)) {
    line += 1;
    if (last !== undefined) throw located(new SetError('set.shape', 'is after the end of the set'), line);
    if (first === undefined) {
      first = atLine(line, () => readFirstLine(text));
    } else if (text.startsWith(']')) {
      const hasComma = frontier.size > 0 && before.hasComma;
      if (hasComma) throw located(new SetError('set.shape', 'ends the entries after a comma'), line);
      last = atLine(line, () => readLastLine(text));
    } else {
      const { leaf, entry, hasComma } = atLine(line, () => readItem(text, before, frontier.size));
      if (entry === undefined) withheld += 1;
      yield { index: frontier.size, leaf, ...(entry && { entry }) };
      appendLeaf(frontier, leaf, onNode);
      before = { path: entry?.path ?? before.path, hasComma };
    }
  }
  if (first === undefined || last === undefined) {
    throw new SetError('set.shape', `the file is cut off: it ends after line ${line}, before its head`, {
      line,
    });
  }
  end({ ...readEnd(first, last, frontier, onNode), withheld });
}

/** The path of the last entry that is not withheld, and whether a comma follows the last one. */
type Before = { readonly path?: string | undefined; readonly hasComma: boolean };

/** Reads the line of an entry that follows `size` others. */
function readItem(
  line: string,
  before: Before,
  size: number,
): { leaf: Uint8Array; entry?: SetEntry; hasComma: boolean } {
  if (!before.hasComma) throw new SetError('set.shape', 'follows an entry without a comma');
  if (size === MAX_ENTRIES) throw new SetError('set.shape', `is one entry more than ${MAX_ENTRIES}`);
  const hasComma = line.endsWith(',');
  const text = hasComma ? line.slice(0, -1) : line;
  const json = parseJsonText(text, MAX_LINE_BYTES);
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new SetError('set.shape', 'is not the JSON object of an entry');
  }
  if (Object.hasOwn(json, 'leaf')) {
    const { leaf, ...others } = json as Members;
    const read = readWithheld(leaf);
    checkForm(json, Object.keys(others).length === 0);
    checkCanonical(text, withheldText(leaf as string));
    return { leaf: read, hasComma };
  }
  const { entry, isKnown } = readEntry(json);
  checkForm(json, isKnown);
  checkCanonical(text, entryText(entry));
  checkOrder(entry.path, before.path);
  return { leaf: entryLeaf(entry), entry, hasComma };
}

function checkForm(json: object, isKnown: boolean): void {
  if (isKnown) return;
  if (!isBounded(json)) throw new SetError('set.shape', 'is too large or too deep');
  throw unsupported('is an entry with members that this version does not know');
}

function checkCanonical(text: string, canonical: string): void {
  if (text !== canonical) throw new SetError('set.shape', 'is not canonical JSON (RFC 8785)');
}

function readEnd(first: Members, last: Members, frontier: Frontier, onNode: OnNode | undefined) {
  const { head: json, ignored } = joinMembers(first, last);
  const { head, headSha256 } = readHead(json);
  if (frontier.size === 0) throw new SetError('set.shape', 'the set has no entries');
  const root = foldRight(frontier.subtrees, onNode);
  if (head.entries !== frontier.size) {
    const message = `the head is not that of the entries: it is of ${head.entries}, and there are ${frontier.size}`;
    throw new SetError('set.inclusion', message);
  }
  if (!equalBytes(root, fromHex(head.root))) {
    throw new SetError('set.inclusion', 'the head is not that of the entries: they have another root');
  }
  return { head, headSha256, ignored };
}

/** Adds the line to an error of reading it. */
function atLine<T>(line: number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw located(error, line);
  }
}

function located(error: unknown, line: number): unknown {
  if (error instanceof SetError) {
    return new SetError(error.code, `line ${line} ${error.message}`, { ...error.details, line });
  }
  if (error instanceof FormatError)
    return new SetError('set.shape', `line ${line} ${error.message}`, { line });
  return error;
}
