/**
 * Strict, bounded reading of DER (X.690, section 10). Every length is checked against its parent before it is used,
 * trailing bytes are rejected, and an element has exactly one accepted encoding of tag and length; the content of OCTET
 * STRINGs is not parsed.
 */
import { FormatError } from '../bytes/format-error.js';

/** Identifier octets of the elements that time stamps and certificates are made of. */
export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** One element: `raw` with tag and length, `content` without. Both are views of the input. Primitive ones have no children. */
export type DerNode = {
  readonly tag: number;
  readonly raw: Uint8Array;
  readonly content: Uint8Array;
  readonly children: readonly DerNode[];
};

type Budget = { nodes: number };

const MAX_DEPTH = 32;
const MAX_NODES = 8192;

/** The identifier octet of context tag `[number]` (0 to 30). */
export function contextTag(number: number, constructed: boolean): number {
  return (constructed ? 0xa0 : 0x80) | number;
}

/**
 * Parses `bytes` as one element. Throws FormatError if they are longer than `maxBytes`, truncated, have trailing bytes,
 * an indefinite or non-minimal length, more than 32 levels or more than 8192 elements.
 */
export function parseDer(bytes: Uint8Array, maxBytes: number): DerNode {
  if (bytes.length > maxBytes)
    throw new FormatError(`DER of ${bytes.length} bytes, at most ${maxBytes} are read`);
  const node = readElement(bytes, 0, { nodes: MAX_NODES });
  if (node.raw.length !== bytes.length) throw new FormatError('DER is followed by further bytes');
  return node;
}

function readElement(bytes: Uint8Array, depth: number, budget: Budget): DerNode {
  if (depth > MAX_DEPTH) throw new FormatError('DER is nested too deeply');
  budget.nodes -= 1;
  if (budget.nodes < 0) throw new FormatError('DER has too many elements');
  const tag = checkedTag(bytes[0]);
  const { headerLength, length } = readLength(bytes);
  const end = headerLength + length;
  if (end > bytes.length) throw new FormatError('DER is truncated');
  const content = bytes.subarray(headerLength, end);
  const children = (tag & 0x20) === 0 ? [] : readAll(content, depth + 1, budget);
  return { tag, raw: bytes.subarray(0, end), content, children };
}

function readAll(bytes: Uint8Array, depth: number, budget: Budget): DerNode[] {
  const nodes: DerNode[] = [];
  for (let offset = 0; offset < bytes.length; ) {
    const node = readElement(bytes.subarray(offset), depth, budget);
    nodes.push(node);
    offset += node.raw.length;
  }
  return nodes;
}

/** Universal primitive, SEQUENCE, SET or a context tag, each with a number below 31: DER knows no constructed strings. */
function checkedTag(tag: number | undefined): number {
  if (tag === undefined) throw new FormatError('DER is truncated');
  const number = tag & 0x1f;
  const constructed = (tag & 0x20) !== 0;
  const tagClass = tag & 0xc0;
  if (number === 0x1f || (tagClass !== 0 && tagClass !== 0x80))
    throw new FormatError('DER tag is not supported');
  const sequenceOrSet = number === 0x10 || number === 0x11;
  if (tagClass === 0 && (number === 0 || constructed !== sequenceOrSet))
    throw new FormatError('DER tag is not valid');
  return tag;
}

function readLength(bytes: Uint8Array): { headerLength: number; length: number } {
  const first = bytes[1];
  if (first === undefined) throw new FormatError('DER is truncated');
  if (first < 0x80) return { headerLength: 2, length: first };
  const octets = first & 0x7f;
  if (octets === 0) throw new FormatError('DER length is indefinite');
  // Four octets are lengths from 16 MiB, more than any input here.
  if (octets > 4) throw new FormatError('DER length is too large');
  if (bytes.length < 2 + octets) throw new FormatError('DER is truncated');
  const length = bytes.subarray(2, 2 + octets).reduce((value, octet) => value * 256 + octet, 0);
  if (bytes[2] === 0 || length < 0x80) throw new FormatError('DER length is not minimal');
  return { headerLength: 2 + octets, length };
}
