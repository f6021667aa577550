/**
 * C2SP signed notes: a text, an empty line, and a line for each signature over the text,
 * `— <name> <base64(key id ‖ signature)>`. Keys travel as `<name>+<hex key id>+<base64(type ‖ key)>`.
 */
import { concatBytes, fromBase64, fromHex, toBase64, toHex, utf8 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { ML_DSA_44_KEY_BYTES } from '../bytes/ml-dsa.js';
import { sha256 } from '../bytes/primitives.js';

/** Signature types in keys and key ids: Ed25519 over the text, and cosignatures by Ed25519 and by ML-DSA-44. */
export const ED25519_NOTE_KEY = 0x01;
export const COSIGNATURE_V1_KEY = 0x04;
export const ML_DSA_44_NOTE_KEY = 0x06;

/** Length of the raw public key of each known signature type, in bytes. */
const KEY_BYTES: ReadonlyMap<number, number> = new Map([
  [ED25519_NOTE_KEY, 32],
  [COSIGNATURE_V1_KEY, 32],
  [ML_DSA_44_NOTE_KEY, ML_DSA_44_KEY_BYTES],
]);

/** Bounds on a note from elsewhere. The bytes suffice for 19 signatures by ML-DSA-44, each of 3,244 characters and a name. */
export const MAX_NOTE_BYTES = 64 * 1024;
const MAX_NOTE_SIGNATURES = 64;

/** One signature line. `keyId` is 8 hex digits; `signature` is what follows the key id. */
export interface NoteSignature {
  readonly name: string;
  readonly keyId: string;
  readonly signature: Uint8Array;
}

/** A parsed note. `text` ends in a newline; its UTF-8 bytes are signed. */
export interface Note {
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

/** A key that verifies signature lines of its type. `publicKey` is raw: 32 bytes, or 1,312 of ML-DSA-44. */
export interface NoteKey {
  readonly name: string;
  readonly keyId: string;
  readonly type: number;
  readonly publicKey: Uint8Array;
}

/** The text form of a note. */
export function encodeNote({ text, signatures }: Note): string {
  return `${text}\n${signatures.map(encodeSignatureLine).join('')}`;
}

/** One signature line, newline included. */
export function encodeSignatureLine({ name, keyId, signature }: NoteSignature): string {
  return `— ${name} ${toBase64(concatBytes(fromHex(keyId, 4), signature))}\n`;
}

/** Splits a note at its last empty line. Throws FormatError if it is malformed or out of bounds. Verifies no signature. */
export function parseNote(envelope: string): Note {
  if (envelope.length > MAX_NOTE_BYTES) throw new FormatError('a note is longer than 64 KiB');
  if (hasControlCharacter(envelope)) throw new FormatError('a note holds a control character');
  const split = envelope.lastIndexOf('\n\n');
  if (split < 0) throw new FormatError('a note has no empty line before its signatures');
  return { text: envelope.slice(0, split + 1), signatures: parseSignatureLines(envelope.slice(split + 2)) };
}

/** Reads one or more signature lines, each with its newline: the end of a note, or a witness's response. */
export function parseSignatureLines(lines: string): NoteSignature[] {
  if (!lines.endsWith('\n')) throw new FormatError('signature lines do not end in a newline');
  const split = lines.slice(0, -1).split('\n', MAX_NOTE_SIGNATURES + 1);
  if (split.length > MAX_NOTE_SIGNATURES) throw new FormatError('a note has more than 64 signatures');
  return split.map(parseSignatureLine);
}

/** Appends signature lines to a note, except those of keys that have already signed: the earliest signature counts. */
export function appendSignatures(envelope: string, added: readonly NoteSignature[]): string {
  const note = parseNote(envelope);
  const signatures = [...note.signatures];
  for (const line of added) {
    if (!signatures.some((known) => isSameKey(known, line))) signatures.push(line);
  }
  return encodeNote({ text: note.text, signatures });
}

/** A note key from its parts; computes the key id: the first 4 bytes of SHA-256(name ‖ 0x0A ‖ type ‖ key). */
export function noteKey(name: string, publicKey: Uint8Array, type = ED25519_NOTE_KEY): NoteKey {
  if (!isKeyName(name)) throw new FormatError('a note key name is empty or holds a space or plus');
  return { name, keyId: toHex(noteKeyHash(name, publicKey, type).subarray(0, 4)), type, publicKey };
}

/** The whole hash whose first four bytes are the key id: Sigstore's `logId`. */
export function noteKeyHash(name: string, publicKey: Uint8Array, type = ED25519_NOTE_KEY): Uint8Array {
  return sha256(utf8(`${name}\n`), Uint8Array.of(type), publicKey);
}

/** The C2SP verifier key (vkey) of a note key. */
export function encodeVerifierKey({ name, keyId, type, publicKey }: NoteKey): string {
  return `${name}+${keyId}+${toBase64(concatBytes(Uint8Array.of(type), publicKey))}`;
}

/**
 * Reads a vkey of type Ed25519, or of either type of cosignatures. Throws FormatError when malformed, or when its key id
 * is not its key's.
 */
export function parseVerifierKey(vkey: string): NoteKey {
  const match = /^([^+]{1,255})\+([0-9a-f]{8})\+([A-Za-z0-9+/=]{4,1752})$/.exec(vkey);
  if (!match) throw new FormatError('not a verifier key');
  const [, name = '', keyId = '', encoded = ''] = match;
  const typed = fromBase64(encoded);
  const type = typed[0] ?? 0;
  const length = KEY_BYTES.get(type);
  if (length === undefined) throw new FormatError(`verifier keys of type ${type} are not known`);
  if (typed.length !== 1 + length)
    throw new FormatError(`a verifier key of type ${type} has ${length} bytes`);
  const key = noteKey(name, typed.slice(1), type);
  if (key.keyId !== keyId) throw new FormatError('a verifier key does not match its key id');
  return key;
}

/** Whether two of them name the same key. Key ids are short: only a verified signature identifies the key. */
export function isSameKey(a: Pick<NoteKey, 'name' | 'keyId'>, b: Pick<NoteKey, 'name' | 'keyId'>): boolean {
  return a.name === b.name && a.keyId === b.keyId;
}

function parseSignatureLine(line: string): NoteSignature {
  const [dash, name, encoded, ...rest] = line.split(' ', 4);
  if (dash !== '—' || name === undefined || encoded === undefined || rest.length > 0 || !isKeyName(name)) {
    throw new FormatError('a signature line is malformed');
  }
  const bytes = fromBase64(encoded);
  if (bytes.length < 5) throw new FormatError('a signature line holds no signature');
  return { name, keyId: toHex(bytes.subarray(0, 4)), signature: bytes.slice(4) };
}

function isKeyName(name: string): boolean {
  return name.length > 0 && name.length <= 255 && !/[\s+\p{Zs}\p{Cc}]/u.test(name) && !/\p{Cs}/u.test(name);
}

function hasControlCharacter(text: string): boolean {
  return /[^\n\P{Cc}]|\p{Cs}/u.test(text);
}
