/** The time that a stamp proves (RFC 3161, section 2.4.2): its genTime, plus or minus its accuracy. */
import { contextTag, type DerNode, TAG } from '../asn1/der.js';
import { membersOf, unsignedInteger } from '../asn1/der-read.js';
import { FormatError } from '../bytes/format-error.js';

/** Whole seconds and, below them, nanoseconds. */
type Accuracy = { readonly seconds: number; readonly nanos: number };

const MAX_SECONDS_BYTES = 4;
const NANOS_PER_MS = 1_000_000;

/**
 * Reads an Accuracy; undefined when there is none, or one of nothing, which no clock has. Throws FormatError, also for
 * more than 2^32 seconds.
 */
export function readAccuracy(node: DerNode | undefined): Accuracy | undefined {
  if (node === undefined) return undefined;
  const members = membersOf(node, 'accuracy');
  const seconds = number(members.takeIf(TAG.integer), 'accuracy seconds', TAG.integer);
  const millis = thousandths(members.takeIf(contextTag(0, false)), 'accuracy millis', contextTag(0, false));
  const micros = thousandths(members.takeIf(contextTag(1, false)), 'accuracy micros', contextTag(1, false));
  members.end();
  if (seconds + millis + micros === 0) return undefined;
  return { seconds, nanos: millis * NANOS_PER_MS + micros * 1000 };
}

/**
 * The latest time, in whole milliseconds, at which a stamp can have been made: genTime and its accuracy; without one
 * genTime and one unit of its last digit, as authorities cut off what their clock says beyond it.
 *
 * @param genTime cut to milliseconds
 * @param digits all digits of its fraction, nine at most
 */
export function latestTime(genTime: Date, digits: string, accuracy: Accuracy | undefined): Date {
  const { seconds, nanos } = accuracy ?? lastDigit(digits);
  const cutOff = Number(digits.padEnd(9, '0')) % NANOS_PER_MS;
  return new Date(genTime.getTime() + seconds * 1000 + Math.ceil((cutOff + nanos) / NANOS_PER_MS));
}

function lastDigit({ length }: string): Accuracy {
  return length === 0 ? { seconds: 1, nanos: 0 } : { seconds: 0, nanos: 10 ** (9 - length) };
}

function thousandths(node: DerNode | undefined, name: string, tag: number): number {
  const value = number(node, name, tag);
  if (value > 999) throw new FormatError(`${name} is out of range`);
  return value;
}

function number(node: DerNode | undefined, name: string, tag: number): number {
  if (node === undefined) return 0;
  const magnitude = unsignedInteger(node, name, tag);
  if (magnitude.length > MAX_SECONDS_BYTES) throw new FormatError(`${name} is out of range`);
  return magnitude.reduce((value, octet) => value * 256 + octet, 0);
}
