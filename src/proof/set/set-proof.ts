/** What the holder of a set shows of it: a member proof of one entry, or the set with some entries withheld. */
import { printablePointerStep } from '../../protocol/json-pointer.js';
import { MAX_PROBLEMS } from '../../protocol/problem.js';
import { fromBase64, toBase64 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { jcsBytes } from '../bytes/jcs.js';
import { HASH_BYTES, leafHash } from '../log/merkle.js';
import { parseJsonText } from '../verify/read/json-text.js';
import { isBounded } from '../verify/read/read-json.js';
import { createSet } from './create-set.js';
import { entryLeaf, readEntry, type SetEntry } from './entry.js';
import { headJson, readHead, type SetHead } from './head.js';
import type { Pieces } from './lines.js';
import { findPathProblem, printablePath } from './path.js';
import { readSet } from './read-set.js';
import { SetError, unsupported } from './set-error.js';

const PROOF_MEDIA_TYPE = 'application/vnd.attestation-service.set-proof.v1+json';

/** Maximum length of a proof's text, in characters or bytes. */
const MAX_PROOF_CHARACTERS = 128 * 1024;

/** A set of 1,000,000 entries has proofs of 20 hashes. */
const MAX_HASHES = 64;

/** A member proof as JSON: to be written to a file, or as the member `set_proof` of a bundle. */
export type SetProofJson = {
  readonly media_type: string;
  readonly head: ReturnType<typeof headJson>;
  readonly entry: SetEntry;
  readonly index: number;
  /** Sibling hashes in base64, leaf to root. */
  readonly inclusion_proof: readonly string[];
};

/** A member proof as read; nothing is verified. */
export type SetProof = {
  readonly head: SetHead;
  /** SHA-256 of the head in lower-case hex: what must have been attested. */
  readonly headSha256: string;
  /** Undefined if it has members that this version does not know: then only its leaf is. */
  readonly entry?: SetEntry;
  readonly leaf: Uint8Array;
  readonly index: number;
  readonly inclusionProof: readonly Uint8Array[];
  /** JSON pointers to members of the proof that this version does not know. Nothing is claimed from them. */
  readonly ignored: readonly string[];
};

/**
 * Makes the proof of the entry at `path`, in one pass over the set. Throws SetError like readSet, and with `set.member` if
 * no entry that is shown has this path.
 */
export async function proveMember(pieces: Pieces, path: string): Promise<SetProofJson> {
  const problem = findPathProblem(path);
  if (problem !== undefined) throw new SetError('set.member', `the path asked for ${problem}`, { path });
  const siblings: Uint8Array[] = [];
  // The node above the entry that was computed last.
  let node: Uint8Array | undefined;
  const { items, finish } = readSet(pieces, (left, right, parent) => {
    if (node !== left && node !== right) return;
    siblings.push(node === left ? right : left);
    node = parent;
  });
  let found: { entry: SetEntry; index: number } | undefined;
  for await (const { entry, index, leaf } of items) {
    if (entry?.path !== path) continue;
    found = { entry, index };
    node = leaf;
  }
  const { head, withheld } = await finish();
  if (found === undefined) {
    const shown = withheld > 0 ? `, unless it is one of the ${withheld} that are withheld` : '';
    throw new SetError('set.member', `${printablePath(path)} is not in the set${shown}`, { path });
  }
  return {
    media_type: PROOF_MEDIA_TYPE,
    head: headJson(head),
    ...found,
    inclusion_proof: siblings.map(toBase64),
  };
}

/**
 * Yields the text of the same set with the entries withheld whose path `keep` rejects; those withheld before stay so. The
 * head, and what was attested, do not change. Throws SetError like readSet, the last time at the end: then the text that
 * was yielded is of no use. Members of the file that are not known are left out.
 */
export async function* redactSet(pieces: Pieces, keep: (path: string) => boolean): AsyncGenerator<string> {
  const read = readSet(pieces);
  const redacted = createSet();
  for await (const { entry, leaf } of read.items) {
    yield entry !== undefined && keep(entry.path) ? redacted.add(entry) : redacted.withhold(leaf);
  }
  const { head } = await read.finish();
  yield redacted.end(head.notBefore).text;
}

/**
 * Reads a member proof, given as JSON text, its UTF-8 bytes or parsed JSON. Throws SetError: of a form that another version
 * may know with `isUnsupported`, and with the head's digest if that is the form.
 */
export function readSetProof(input: unknown): SetProof {
  const json = parseProof(input);
  const { media_type: mediaType, head, entry, index, inclusion_proof: hashes, ...others } = json;
  if (typeof mediaType !== 'string') throw new SetError('set.shape', 'the member proof has no media_type');
  if (mediaType !== PROOF_MEDIA_TYPE) {
    throw unsupported('the member proof has a media type that this version does not know');
  }
  if (!Number.isSafeInteger(index) || Number(index) < 0) {
    throw new SetError('set.shape', 'the member proof has no index below 2^53');
  }
  return {
    ...readHead(head),
    ...readProvenEntry(entry),
    index: Number(index),
    inclusionProof: readHashes(hashes),
    ignored: Object.keys(others)
      .slice(0, MAX_PROBLEMS)
      .map((name) => `/${printablePointerStep(name)}`),
  };
}

function parseProof(input: unknown): Readonly<Record<string, unknown>> {
  let json = input;
  if (typeof input === 'string' || input instanceof Uint8Array) {
    try {
      json = parseJsonText(input, MAX_PROOF_CHARACTERS);
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      throw new SetError('set.shape', `the member proof ${error.message}`);
    }
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new SetError('set.shape', 'the member proof is not a JSON object');
  }
  if (!isBounded(json)) {
    throw new SetError('set.shape', 'the member proof is too large, too deep or not plain JSON');
  }
  return json as Readonly<Record<string, unknown>>;
}

function readProvenEntry(json: unknown): { leaf: Uint8Array; entry?: SetEntry } {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new SetError('set.shape', 'the member proof has no entry');
  }
  try {
    const { entry, isKnown } = readEntry(json);
    return isKnown ? { entry, leaf: entryLeaf(entry) } : { leaf: leafHash(jcsBytes(json)) };
  } catch (error) {
    if (error instanceof FormatError) {
      throw new SetError('set.shape', 'the entry of the member proof is not JSON that can be hashed');
    }
    if (!(error instanceof SetError)) throw error;
    throw new SetError(error.code, `the entry of the member proof ${error.message}`, error.details);
  }
}

function readHashes(hashes: unknown): Uint8Array[] {
  if (!Array.isArray(hashes) || hashes.length > MAX_HASHES) {
    throw new SetError(
      'set.shape',
      `the member proof has no inclusion_proof of at most ${MAX_HASHES} hashes`,
    );
  }
  return hashes.map((hash) => {
    try {
      if (typeof hash === 'string') return fromBase64(hash, HASH_BYTES);
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
    }
    throw new SetError('set.shape', 'inclusion_proof of the member proof is not hashes in base64');
  });
}
