/** The serialised form of timestamps: items one after the other, all but the last preceded by 0xff. */
import { concatBytes } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { type Attestation, encodeAttestation, readAttestation } from './attestation.js';
import { type ByteReader, encodeVarbytes } from './byte-reader.js';
import { applyOperation, hasArgument, MAX_MESSAGE_BYTES, type Operation } from './operation.js';
import { makeTimestamp, type Step, type Timestamp } from './timestamp.js';

/** Messages on the way to an attestation, as other implementations limit them. */
const MAX_DEPTH = 256;
/** Attestations and operations of a whole timestamp. A calendar's path to a block has about 100. */
const MAX_ITEMS = 16_384;

const ATTESTATION = 0x00;
const FORK = 0xff;

/**
 * Reads the timestamp of `message`, its items in any order. Throws FormatError if it is malformed, has more than 256
 * messages in a row, or more than `maxItems`.
 */
export function readTimestamp(reader: ByteReader, message: Uint8Array, maxItems = MAX_ITEMS): Timestamp {
  const count = boundedCount(maxItems);
  const readNode = (own: Uint8Array, depth: number): Timestamp => {
    checkDepth(depth);
    const attestations: Attestation[] = [];
    const steps: Step[] = [];
    let isLast = false;
    while (!isLast) {
      count();
      const first = reader.byte();
      isLast = first !== FORK;
      const tag = isLast ? first : reader.byte();
      if (tag === ATTESTATION) attestations.push(readAttestation(reader));
      else steps.push(readStep(own, tag, depth));
    }
    return makeTimestamp(own, attestations, steps);
  };
  const readStep = (own: Uint8Array, tag: number, depth: number): Step => {
    const operation = readOperation(reader, tag);
    return { operation, timestamp: readNode(applyOperation(operation, own), depth + 1) };
  };
  return readNode(message, 1);
}

/** Serialises a timestamp in canonical order. Throws FormatError if readers would refuse it. */
export function encodeTimestamp(timestamp: Timestamp): Uint8Array {
  const parts: Uint8Array[] = [];
  const count = boundedCount(MAX_ITEMS);
  const write = ({ attestations, steps }: Timestamp, depth: number): void => {
    checkDepth(depth);
    let left = attestations.length + steps.length;
    if (left === 0) throw new FormatError('a timestamp has no attestation');
    const writeItem = (...item: Uint8Array[]) => {
      count();
      left -= 1;
      parts.push(Uint8Array.from(left > 0 ? [FORK] : []), ...item);
    };
    for (const attestation of attestations) {
      writeItem(Uint8Array.of(ATTESTATION), encodeAttestation(attestation));
    }
    for (const { operation, timestamp: next } of steps) {
      writeItem(encodeOperation(operation));
      write(next, depth + 1);
    }
  };
  write(timestamp, 1);
  return concatBytes(...parts);
}

function readOperation(reader: ByteReader, tag: number): Operation {
  if (!hasArgument(tag)) return { tag };
  const argument = reader.varbytes(MAX_MESSAGE_BYTES);
  if (argument.length === 0) throw new FormatError('an OpenTimestamps operation has an empty argument');
  return { tag, argument };
}

function encodeOperation({ tag, argument }: Operation): Uint8Array {
  return concatBytes(Uint8Array.of(tag), ...(argument === undefined ? [] : [encodeVarbytes(argument)]));
}

function checkDepth(depth: number): void {
  if (depth > MAX_DEPTH) throw new FormatError('a timestamp has more than 256 messages in a row');
}

function boundedCount(maxItems: number): () => void {
  let items = 0;
  return () => {
    items += 1;
    if (items > maxItems) throw new FormatError(`a timestamp has more than ${maxItems} items`);
  };
}
