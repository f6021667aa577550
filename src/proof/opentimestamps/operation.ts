/** Operations of OpenTimestamps proofs. Each turns a message into the next one. */
import { ripemd160, sha1 } from '@noble/hashes/legacy.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { compareBytes, concatBytes, toHex, utf8 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { sha256 } from '../bytes/primitives.js';

/** The largest message and argument in bytes; a limit of the format. */
export const MAX_MESSAGE_BYTES = 4_096;

/** An operation by the tag of the format. Only append and prepend have an argument, of 1 to 4,096 bytes. */
export type Operation = { readonly tag: number; readonly argument?: Uint8Array };

export const SHA256_TAG = 0x08;
const APPEND_TAG = 0xf0;
const PREPEND_TAG = 0xf1;

export const SHA256: Operation = { tag: SHA256_TAG };

/** Operations that replace a message of any length by its digest, in bytes. */
const DIGEST_BYTES: ReadonlyMap<number, number> = new Map([
  [0x02, 20],
  [0x03, 20],
  [SHA256_TAG, 32],
  [0x67, 32],
]);

const APPLY: ReadonlyMap<number, (message: Uint8Array, argument: Uint8Array) => Uint8Array> = new Map([
  [0x02, (message) => sha1(message)],
  [0x03, (message) => ripemd160(message)],
  [SHA256_TAG, (message) => sha256(message)],
  [0x67, (message) => keccak_256(message)],
  [APPEND_TAG, (message, argument) => concatBytes(message, argument)],
  [PREPEND_TAG, (message, argument) => concatBytes(argument, message)],
  [0xf2, (message) => message.slice().reverse()],
  [0xf3, (message) => utf8(toHex(message))],
]);

/** Creates the operation that appends `argument` to the message. */
export function append(argument: Uint8Array): Operation {
  return { tag: APPEND_TAG, argument };
}

/** Creates the operation that prepends `argument` to the message. */
export function prepend(argument: Uint8Array): Operation {
  return { tag: PREPEND_TAG, argument };
}

/** Whether the tag is that of an operation with an argument. */
export function hasArgument(tag: number): boolean {
  return tag === APPEND_TAG || tag === PREPEND_TAG;
}

/** The length of the digest that an operation makes. Throws FormatError if it is no hash. */
export function digestBytes(tag: number): number {
  const length = DIGEST_BYTES.get(tag);
  if (length === undefined) throw new FormatError('an OpenTimestamps file names an unknown hash');
  return length;
}

/** Applies an operation. Throws FormatError if it is unknown or the message becomes empty or longer than 4,096 bytes. */
export function applyOperation({ tag, argument }: Operation, message: Uint8Array): Uint8Array {
  const apply = APPLY.get(tag);
  if (apply === undefined) throw new FormatError('an OpenTimestamps proof has an unknown operation');
  const result = apply(message, argument ?? new Uint8Array());
  if (result.length === 0 || result.length > MAX_MESSAGE_BYTES) {
    throw new FormatError('a message of an OpenTimestamps proof is empty or longer than 4,096 bytes');
  }
  return result;
}

/** The canonical order: by tag, then by argument. */
export function compareOperations(a: Operation, b: Operation): number {
  return a.tag - b.tag || compareBytes(a.argument ?? new Uint8Array(), b.argument ?? new Uint8Array());
}
