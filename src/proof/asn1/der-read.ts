/** Values of DER elements (X.690, section 8), and the members of a SEQUENCE one after the other. All throw FormatError. */

import { toHex } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { type DerNode, TAG } from './der.js';

/** The members of a constructed element, taken in order. */
export type DerMembers = {
  /** The next member, which must have this tag. */
  take(tag: number): DerNode;
  /** The next member if it has this tag. */
  takeIf(tag: number): DerNode | undefined;
  /** The next member, of any tag. */
  takeAny(): DerNode;
  /** Throws when a member is left. */
  end(): void;
};

/** Walks the members of `node`, which must have tag `tag`. `name` is what an error calls the structure. */
export function membersOf(node: DerNode, name: string, tag: number = TAG.sequence): DerMembers {
  expectTag(node, tag, name);
  let next = 0;
  const takeAny = () => {
    const member = node.children[next];
    if (member === undefined) throw new FormatError(`${name} ends early`);
    next += 1;
    return member;
  };
  return {
    takeAny,
    take: (wanted) => expectTag(takeAny(), wanted, name),
    takeIf: (wanted) => (node.children[next]?.tag === wanted ? takeAny() : undefined),
    end: () => {
      if (next < node.children.length) throw new FormatError(`${name} has members that do not belong there`);
    },
  };
}

/** The only member of `node`, which must have tag `tag`. */
export function onlyMember(node: DerNode, name: string, tag: number): DerNode {
  const member = node.children[0];
  if (member === undefined || node.children.length !== 1)
    throw new FormatError(`${name} must hold one element`);
  return expectTag(member, tag, name);
}

/** `node` itself when it has tag `tag`. */
export function expectTag(node: DerNode, tag: number, name: string): DerNode {
  if (node.tag !== tag) throw new FormatError(`${name} has tag ${node.tag} where ${tag} belongs`);
  return node;
}

/**
 * Magnitude of a non-negative INTEGER, big-endian, without leading zero bytes; zero is one zero byte. `tag` is another
 * one for a member that is tagged implicitly.
 */
export function unsignedInteger(node: DerNode, name: string, tag: number = TAG.integer): Uint8Array {
  const { content } = expectTag(node, tag, name);
  const [first, second] = content;
  if (first === undefined || first >= 0x80) throw new FormatError(`${name} is not a non-negative integer`);
  if (first === 0 && second !== undefined && second < 0x80) throw new FormatError(`${name} is not minimal`);
  return first === 0 && second !== undefined ? content.subarray(1) : content;
}

/** Content octets of an INTEGER of either sign, which are minimal: equal numbers have equal octets. `tag` as above. */
export function integerOctets(node: DerNode, name: string, tag: number = TAG.integer): Uint8Array {
  const { content } = expectTag(node, tag, name);
  const [first, second] = content;
  const isPadded = second !== undefined && (first === 0 ? second < 0x80 : first === 0xff && second >= 0x80);
  if (first === undefined || isPadded) throw new FormatError(`${name} is not a minimal integer`);
  return content;
}

/** An INTEGER of either sign, of at most `maxBytes` content octets. */
export function integerValue(node: DerNode, name: string, maxBytes: number): bigint {
  const octets = integerOctets(node, name);
  if (octets.length > maxBytes) throw new FormatError(`${name} has ${octets.length} bytes`);
  return BigInt.asIntN(octets.length * 8, BigInt(`0x${toHex(octets)}`));
}

/** A non-negative INTEGER below 128, as versions and statuses are. */
export function smallInteger(node: DerNode, name: string): number {
  const magnitude = unsignedInteger(node, name);
  const [value] = magnitude;
  if (value === undefined || value >= 0x80 || magnitude.length > 1)
    throw new FormatError(`${name} is out of range`);
  return value;
}

/** Dotted form of an OBJECT IDENTIFIER of at most 64 bytes; arcs may have any size (2.25 has 128-bit ones). */
export function objectIdentifier(node: DerNode, name: string): string {
  const { content } = expectTag(node, TAG.oid, name);
  const last = content.at(-1);
  if (last === undefined || last >= 0x80 || content.length > 64)
    throw new FormatError(`${name} is not an identifier`);
  const arcs: bigint[] = [];
  let arc = 0n;
  let first = true;
  for (const octet of content) {
    if (first && octet === 0x80) throw new FormatError(`${name} is not minimal`);
    arc = (arc << 7n) | BigInt(octet & 0x7f);
    first = octet < 0x80;
    if (!first) continue;
    arcs.push(arc);
    arc = 0n;
  }
  const head = arcs[0] ?? 0n;
  const top = head < 80n ? head / 40n : 2n;
  return [top, head - top * 40n, ...arcs.slice(1)].join('.');
}

/** A BOOLEAN, which is 00 or FF in DER. */
export function booleanValue(node: DerNode, name: string): boolean {
  const { content } = expectTag(node, TAG.boolean, name);
  if (content.length !== 1 || (content[0] !== 0 && content[0] !== 0xff)) {
    throw new FormatError(`${name} is not a boolean`);
  }
  return content[0] === 0xff;
}

/** Octets of a BIT STRING of whole octets, as signatures are. */
export function wholeBitString(node: DerNode, name: string): Uint8Array {
  const { content } = expectTag(node, TAG.bitString, name);
  if (content[0] !== 0) throw new FormatError(`${name} is not of whole octets`);
  return content.subarray(1);
}

/** Whether a BIT STRING of named bits has any that is set. */
export function hasAnyNamedBit(node: DerNode, name: string): boolean {
  return namedBits(node, name).some((octet) => octet !== 0);
}

/** Whether bit `bit` (0 is the first) of a BIT STRING of named bits is set. */
export function hasNamedBit(node: DerNode, bit: number, name: string): boolean {
  return ((namedBits(node, name)[bit >> 3] ?? 0) & (0x80 >> (bit & 7))) !== 0;
}

function namedBits(node: DerNode, name: string): Uint8Array {
  const { content } = expectTag(node, TAG.bitString, name);
  const unused = content[0] ?? 8;
  if (unused > 7 || (content.length === 1 && unused > 0))
    throw new FormatError(`${name} is not a bit string`);
  return content.subarray(1);
}

/** Time of a certificate (RFC 5280, section 4.1.2.5): UTCTime from 1950 to 2049, or GeneralizedTime. */
export function x509Time(node: DerNode, name: string): Date {
  if (node.tag !== TAG.utcTime) return generalizedTime(node, name);
  const century = (node.content[0] ?? 0) >= 0x35 ? [0x31, 0x39] : [0x32, 0x30];
  if (node.content.length !== 13) throw new FormatError(`${name} is not a UTC time`);
  const content = Uint8Array.of(...century, ...node.content);
  return generalizedTime({ ...node, tag: TAG.generalizedTime, content }, name);
}

/**
 * A GeneralizedTime in UTC with seconds and, if present, a fraction of up to nine digits (RFC 3161, section 2.4.2).
 * Digits past milliseconds are cut off; a trailing zero, which DER forbids and some authorities write, is accepted.
 */
export function generalizedTime(node: DerNode, name: string): Date {
  const { content } = expectTag(node, TAG.generalizedTime, name);
  const match = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:\.(\d{1,9}))?Z$/.exec(
    String.fromCharCode(...content.subarray(0, 32)),
  );
  if (match === null || content.length > 32) throw new FormatError(`${name} is not a UTC time`);
  const [, year, month, day, hour, minute, second, fraction = ''] = match;
  const text = `${year}-${month}-${day}T${hour}:${minute}:${second}.${fraction.slice(0, 3).padEnd(3, '0')}Z`;
  const time = new Date(text);
  // Date accepts a 30th of February as the 1st or 2nd of March.
  if (Number.isNaN(time.getTime()) || time.toISOString() !== text)
    throw new FormatError(`${name} is not a calendar time`);
  return time;
}

/** The digits after the point of a GeneralizedTime that {@link generalizedTime} reads; empty for whole seconds. */
export function fractionDigits({ content }: DerNode): string {
  return /\.(\d+)Z$/.exec(String.fromCharCode(...content.subarray(0, 32)))?.[1] ?? '';
}
