/** Writing of DER (X.690, section 10), as `der-read.ts` reads it. */

import { concatBytes, toHex, utf8 } from '../bytes/encoding.js';
import { TAG } from './der.js';

/** An element with this identifier octet around the given contents. */
export function derElement(tag: number, ...contents: Uint8Array[]): Uint8Array {
  const content = concatBytes(...contents);
  return concatBytes(Uint8Array.of(tag), derLength(content.length), content);
}

/** A SEQUENCE of elements. */
export function derSequence(...elements: Uint8Array[]): Uint8Array {
  return derElement(TAG.sequence, ...elements);
}

/** A SET OF elements, in the order of DER. */
export function derSetOf(...elements: Uint8Array[]): Uint8Array {
  return derElement(TAG.set, ...elements.sort((a, b) => (toHex(a) < toHex(b) ? -1 : 1)));
}

/** A non-negative INTEGER from its big-endian bytes, or from a number below 128. */
export function derInteger(value: Uint8Array | number): Uint8Array {
  const bytes = typeof value === 'number' ? Uint8Array.of(value) : value;
  const start = bytes.findIndex((octet) => octet !== 0);
  const magnitude = start === -1 ? Uint8Array.of(0) : bytes.subarray(start);
  const sign = (magnitude[0] ?? 0) >= 0x80 ? [Uint8Array.of(0)] : [];
  return derElement(TAG.integer, ...sign, magnitude);
}

/** An OBJECT IDENTIFIER from its dotted form; arcs may have any size. Throws if the text is none. */
export function derObjectIdentifier(dotted: string): Uint8Array {
  if (!/^[0-2](\.(0|[1-9]\d*))+$/.test(dotted)) throw new RangeError('not an object identifier');
  const [top = 0n, second = 0n, ...arcs] = dotted.split('.').map(BigInt);
  return derElement(TAG.oid, Uint8Array.from([top * 40n + second, ...arcs].flatMap(base128)));
}

/** An OCTET STRING. */
export function derOctetString(...contents: Uint8Array[]): Uint8Array {
  return derElement(TAG.octetString, ...contents);
}

/** A BIT STRING whose last `unusedBits` (0 to 7) bits are padding. */
export function derBitString(bytes: Uint8Array, unusedBits = 0): Uint8Array {
  return derElement(TAG.bitString, Uint8Array.of(unusedBits), bytes);
}

/** The BOOLEAN TRUE; DER leaves out a FALSE that is the default. */
export function derTrue(): Uint8Array {
  return derElement(TAG.boolean, Uint8Array.of(0xff));
}

/** A UTF8String. */
export function derUtf8String(text: string): Uint8Array {
  return derElement(0x0c, utf8(text));
}

/** A GeneralizedTime of whole seconds, UTC; a fraction is cut off. */
export function derGeneralizedTime(time: Date): Uint8Array {
  return derElement(TAG.generalizedTime, utf8(`${compactTime(time)}Z`));
}

/** Time of a certificate (RFC 5280, section 4.1.2.5): UTCTime through 2049, GeneralizedTime from then on. */
export function derX509Time(time: Date): Uint8Array {
  if (time.getUTCFullYear() >= 2050) return derGeneralizedTime(time);
  return derElement(0x17, utf8(`${compactTime(time).slice(2)}Z`));
}

function compactTime(time: Date): string {
  return time.toISOString().slice(0, 19).replace(/[-T:]/g, '');
}

function derLength(length: number): Uint8Array {
  if (length < 0x80) return Uint8Array.of(length);
  const octets: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) octets.unshift(rest % 256);
  return Uint8Array.of(0x80 | octets.length, ...octets);
}

function base128(arc: bigint): number[] {
  const octets = [Number(arc & 0x7fn)];
  for (let rest = arc >> 7n; rest > 0n; rest >>= 7n) octets.unshift(Number(rest & 0x7fn) | 0x80);
  return octets;
}

/** r and s, of 32 bytes each, as an ECDSA-Sig-Value. */
export function derEcdsaSignature(signature: Uint8Array): Uint8Array {
  const half = signature.length / 2;
  return derSequence(derInteger(signature.subarray(0, half)), derInteger(signature.subarray(half)));
}
