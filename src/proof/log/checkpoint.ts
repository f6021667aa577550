/**
 * Checkpoints (C2SP tlog-checkpoint): a log's origin, size and root, as the text of a signed note. The body is what
 * every witness vouches for; where one wants a hash, it is SHA-256 of exactly these bytes.
 */
import { fromBase64, toBase64, utf8 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { sha256, verifyEd25519 } from '../bytes/primitives.js';
import { HASH_BYTES } from './merkle.js';
import {
  ED25519_NOTE_KEY,
  encodeNote,
  isSameKey,
  type Note,
  type NoteKey,
  noteKey,
  parseNote,
} from './note.js';

/** The fields of a checkpoint. */
export interface Checkpoint {
  readonly origin: string;
  readonly size: number;
  readonly rootHash: Uint8Array;
}

/** A parsed signed checkpoint; `note.text` is the body. */
export interface SignedCheckpoint extends Checkpoint {
  readonly note: Note;
}

/** The log's own key: `publicKey` is the raw 32 bytes, `sign` makes a 64-byte Ed25519 signature. */
export interface CheckpointSigner {
  readonly publicKey: Uint8Array;
  readonly sign: (data: Uint8Array) => Uint8Array;
}

/** The body: `<origin>\n<size>\n<base64 root>\n`. */
export function checkpointBody({ origin, size, rootHash }: Checkpoint): string {
  return `${origin}\n${size}\n${toBase64(rootHash)}\n`;
}

/** The digest that time-stamping witnesses sign: SHA-256 of the body, 32 bytes. */
export function checkpointDigest(body: string): Uint8Array {
  return sha256(utf8(body));
}

/** The checkpoint as a note signed by its log (Ed25519; the signature line carries the origin as its name). */
export function signCheckpoint(checkpoint: Checkpoint, signer: CheckpointSigner): string {
  const text = checkpointBody(checkpoint);
  const { name, keyId } = noteKey(checkpoint.origin, signer.publicKey);
  return encodeNote({ text, signatures: [{ name, keyId, signature: signer.sign(utf8(text)) }] });
}

/** Parses a checkpoint body. Throws FormatError unless it has exactly three canonical lines: no extension lines. */
export function parseCheckpointBody(body: string): Checkpoint {
  const lines = body.split('\n', 5);
  if (lines.length !== 4 || lines[3] !== '') throw new FormatError('a checkpoint body is not three lines');
  return parseCheckpointLines(lines);
}

/** Parses a checkpoint body of any log: extension lines, which no witness vouches for, may follow the three. */
export function parseExtensibleBody(body: string): Checkpoint {
  const lines = body.split('\n');
  if (lines.length < 4 || lines.pop() !== '' || lines.includes('')) {
    throw new FormatError('a checkpoint body is not three or more lines');
  }
  return parseCheckpointLines(lines);
}

function parseCheckpointLines([origin = '', size = '', root = '']: readonly string[]): Checkpoint {
  if (origin === '') throw new FormatError('a checkpoint has no origin');
  if (!/^(0|[1-9]\d{0,15})$/.test(size) || !Number.isSafeInteger(Number(size))) {
    throw new FormatError('a checkpoint size is not a number below 2^53');
  }
  return { origin, size: Number(size), rootHash: fromBase64(root, HASH_BYTES) };
}

/** Reads a signed checkpoint. Throws FormatError when malformed; checks no signature. */
export function parseCheckpoint(envelope: string): SignedCheckpoint {
  const note = parseNote(envelope);
  return { ...parseCheckpointBody(note.text), note };
}

/**
 * Whether the log with this key signed the note. As the note format wants it: a line by that key must be there, and
 * every line that claims to be by it must verify.
 */
export async function verifyNoteSignature(note: Note, key: NoteKey): Promise<boolean> {
  const claimed = note.signatures.filter((line) => isSameKey(line, key));
  if (key.type !== ED25519_NOTE_KEY || claimed.length === 0) return false;
  const text = utf8(note.text);
  const checks = claimed.map((line) => verifyEd25519(key.publicKey, text, line.signature));
  return (await Promise.all(checks)).every(Boolean);
}

/** Reads a checkpoint and verifies it against its log's key. Throws FormatError when it is not that log's. */
export async function openCheckpoint(envelope: string, logKey: NoteKey): Promise<SignedCheckpoint> {
  const checkpoint = parseCheckpoint(envelope);
  if (checkpoint.origin !== logKey.name) throw new FormatError('a checkpoint is of another log');
  if (!(await verifyNoteSignature(checkpoint.note, logKey))) {
    throw new FormatError('a checkpoint is not signed by its log');
  }
  return checkpoint;
}
