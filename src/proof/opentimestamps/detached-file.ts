/** Detached timestamp files (.ots): the digest of a file and its timestamp. */
import { concatBytes, fromHex } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { equalBytes } from '../bytes/primitives.js';
import { readBytes } from './byte-reader.js';
import { digestBytes, SHA256_TAG } from './operation.js';
import type { Timestamp } from './timestamp.js';
import { encodeTimestamp, readTimestamp } from './timestamp-codec.js';

/** `timestamp.message` is the digest of the file. */
type DetachedFile = { readonly hashTag: number; readonly timestamp: Timestamp };

/** `\0OpenTimestamps\0\0Proof\0` and eight random bytes. */
const MAGIC = fromHex('004f70656e54696d657374616d7073000050726f6f6600bf89e2e884e89294');
const VERSION = 1;
/** The largest file that is read or written. */
const MAX_OTS_BYTES = 256 * 1024;

/** Parses an .ots file of at most 256 KiB. Throws FormatError. */
export function parseOts(bytes: Uint8Array): DetachedFile {
  if (bytes.length > MAX_OTS_BYTES) throw new FormatError('an .ots file is longer than 256 KiB');
  return readBytes(bytes, (reader) => {
    if (!equalBytes(reader.bytes(MAGIC.length), MAGIC)) throw new FormatError('not an .ots file');
    if (reader.varuint() !== VERSION) throw new FormatError('an .ots file of another version');
    const hashTag = reader.byte();
    const digest = reader.bytes(digestBytes(hashTag));
    return { hashTag, timestamp: readTimestamp(reader, digest) };
  });
}

/** Parses the .ots file of a SHA-256 digest. Throws FormatError, also if it is of another digest. */
export function parseOtsOf(digest: Uint8Array, bytes: Uint8Array): Timestamp {
  const { hashTag, timestamp } = parseOts(bytes);
  if (hashTag !== SHA256_TAG || !equalBytes(timestamp.message, digest)) {
    throw new FormatError('an .ots file of another digest');
  }
  return timestamp;
}

/** Writes the .ots file of a digest, SHA-256 by default. Throws FormatError if it is longer than 256 KiB. */
export function encodeOts(timestamp: Timestamp, hashTag = SHA256_TAG): Uint8Array {
  const parts = [MAGIC, Uint8Array.of(VERSION, hashTag), timestamp.message, encodeTimestamp(timestamp)];
  const bytes = concatBytes(...parts);
  if (bytes.length > MAX_OTS_BYTES) throw new FormatError('an .ots file is longer than 256 KiB');
  return bytes;
}
