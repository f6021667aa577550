/** Heads of sets: what is attested in the place of all files. */
import { toHex, utf8 } from '../bytes/encoding.js';
import { jcs } from '../bytes/jcs.js';
import { sha256 } from '../bytes/primitives.js';
import { HASH_BYTES } from '../log/merkle.js';
import { isBounded } from '../verify/read/read-json.js';
import { MAX_ENTRIES } from './entry.js';
import { SetError, unsupported } from './set-error.js';

const HEAD_MEDIA_TYPE = 'application/vnd.attestation-service.set-head.v1+json';

/**
 * A checkpoint of the log that the set was closed after: until it was published nobody could know its root. Nothing here
 * checks that the log has it.
 */
export type NotBefore = {
  /** The log's name. */
  readonly origin: string;
  /** The log's root in lower-case hex. */
  readonly rootHash: string;
  /** The log's size, at least 1: everybody knows the root of the empty log. */
  readonly treeSize: number;
};

/** What is attested of a set. */
export type SetHead = {
  /** Number of entries, 1 to 1,000,000. */
  readonly entries: number;
  /** RFC 6962 root over the leaves of the entries, in lower-case hex. */
  readonly root: string;
  readonly notBefore?: NotBefore;
};

/** Says what the checkpoint means: that the log has it takes the log, so that it is not verified. */
export function notBeforeText({ origin, treeSize, rootHash }: NotBefore): string {
  return `The set names the checkpoint of ${treeSize} leaves of ${origin}, root ${rootHash}: if the log has it, the set was closed later.`;
}

/** The head's canonical JSON (RFC 8785). Throws SetError if a field is out of its bounds. */
export function headText(head: SetHead): string {
  const text = jcs(headJson(head));
  readHead(JSON.parse(text));
  return text;
}

/** The digest that is attested: SHA-256 of the head's canonical JSON, in lower-case hex. */
export function headDigest(text: string): string {
  return toHex(sha256(utf8(text)));
}

/** The head as JSON has it. */
export function headJson({ entries, root, notBefore }: SetHead) {
  return {
    entries,
    media_type: HEAD_MEDIA_TYPE,
    ...(notBefore && {
      not_before: {
        origin: notBefore.origin,
        root_hash: notBefore.rootHash,
        tree_size: notBefore.treeSize,
      },
    }),
    root,
  };
}

/**
 * Reads a head from parsed JSON, with its digest. Throws SetError, of a head that another version may know with
 * `isUnsupported` and the digest.
 */
export function readHead(json: unknown): { head: SetHead; headSha256: string } {
  if (!isObject(json) || !isBounded(json))
    throw new SetError('set.shape', 'the head is no plain JSON object');
  const headSha256 = headDigest(canonical(json));
  const { entries, media_type: mediaType, not_before: notBefore, root, ...others } = json;
  if (typeof mediaType !== 'string') throw new SetError('set.shape', 'the head has no media_type');
  if (mediaType !== HEAD_MEDIA_TYPE) {
    throw unsupported('the head of the set has a media type that this version does not know', headSha256);
  }
  if (!isCount(entries, MAX_ENTRIES)) {
    throw new SetError('set.shape', `the head has no number of entries from 1 to ${MAX_ENTRIES}`);
  }
  if (!isHash(root)) throw new SetError('set.shape', 'the head has no root in lower-case hex');
  const read = notBefore === undefined ? undefined : readNotBefore(notBefore, headSha256);
  if (Object.keys(others).length > 0) throw unknownMembers(headSha256);
  return { head: { entries, root, ...(read && { notBefore: read }) }, headSha256 };
}

function readNotBefore(json: unknown, headSha256: string): NotBefore {
  if (!isObject(json)) throw new SetError('set.shape', 'not_before of the head is no object');
  const { origin, root_hash: rootHash, tree_size: treeSize, ...others } = json;
  const isRight = typeof origin === 'string' && ORIGIN.test(origin) && isHash(rootHash);
  if (!isRight || !isCount(treeSize, Number.MAX_SAFE_INTEGER)) {
    throw new SetError('set.shape', 'not_before of the head has no origin, root_hash or tree_size');
  }
  if (Object.keys(others).length > 0) throw unknownMembers(headSha256);
  return { origin, rootHash, treeSize };
}

function unknownMembers(headSha256: string): SetError {
  return unsupported('the head of the set has members that this version does not know', headSha256);
}

/** Throws SetError for lone surrogates, which have no canonical JSON. */
function canonical(json: object): string {
  try {
    return jcs(json);
  } catch {
    throw new SetError('set.shape', 'the head is not JSON that can be hashed');
  }
}

const ORIGIN = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,254}$/;
const SHA256 = new RegExp(`^[0-9a-f]{${2 * HASH_BYTES}}$`);

function isHash(value: unknown): value is string {
  return typeof value === 'string' && SHA256.test(value);
}

function isCount(value: unknown, max: number): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= max;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
