/** The request for a cosignature by a log or a feeder (C2SP tlog-witness, add-checkpoint). */
import { fromBase64, toBase64, toHex, utf8 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { sha256 } from '../bytes/primitives.js';
import { HASH_BYTES } from './merkle.js';
import { MAX_NOTE_BYTES } from './note.js';

/** The path below a witness's submission prefix. */
export const ADD_CHECKPOINT_PATH = '/add-checkpoint';

/** The name of a log in the paths of a witness's monitoring interface: hex SHA-256 of its origin. */
export function originHash(origin: string): string {
  return toHex(sha256(utf8(origin)));
}

/** The path, below a witness's monitoring prefix, of the newest checkpoint of a log that it has cosigned. */
export function monitoringPath(origin: string): string {
  return `/${originHash(origin)}/checkpoint`;
}

/** The content type of a 409: the tree size that the witness knows, in decimal, and a newline. */
export const TLOG_SIZE_TYPE = 'text/x.tlog.size';

const MAX_PROOF_LINES = 63;

/** Enough for a note of the largest size and the longest proof. */
export const MAX_ADD_CHECKPOINT_BYTES = MAX_NOTE_BYTES + 8 * 1024;

/** `proof` proves that the tree of `oldSize` leaves is a prefix of the checkpoint's; `note` is the signed checkpoint. */
export interface AddCheckpoint {
  readonly oldSize: number;
  readonly proof: readonly Uint8Array[];
  readonly note: string;
}

/** The request's body. */
export function encodeAddCheckpoint({ oldSize, proof, note }: AddCheckpoint): string {
  return `old ${oldSize}\n${proof.map((hash) => `${toBase64(hash)}\n`).join('')}\n${note}`;
}

/** Reads a request's body; the note is left unread. Throws FormatError when malformed. */
export function parseAddCheckpoint(text: string): AddCheckpoint {
  const end = text.indexOf('\n\n');
  if (end < 0) throw new FormatError('the request has no empty line before its checkpoint');
  const [old = '', ...proof] = text.slice(0, end).split('\n', MAX_PROOF_LINES + 2);
  if (proof.length > MAX_PROOF_LINES) {
    throw new FormatError(`the request has more than ${MAX_PROOF_LINES} lines of proof`);
  }
  const oldSize = old.startsWith('old ') ? findTlogSize(`${old.slice(4)}\n`) : undefined;
  if (oldSize === undefined) throw new FormatError('the first line is not "old <size>"');
  return { oldSize, proof: proof.map((line) => fromBase64(line, HASH_BYTES)), note: text.slice(end + 2) };
}

/** The tree size in the body of a 409, below 2^53; undefined for anything else. */
export function findTlogSize(text: string): number | undefined {
  const match = /^(0|[1-9]\d{0,15})\n$/.exec(text);
  const size = Number(match?.[1]);
  return match !== null && Number.isSafeInteger(size) ? size : undefined;
}
