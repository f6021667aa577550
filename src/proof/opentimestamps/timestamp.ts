/**
 * Timestamps of the OpenTimestamps format: a tree whose nodes are messages, whose edges are operations, and whose leaves
 * are attestations.
 */
import { FormatError } from '../bytes/format-error.js';
import { equalBytes } from '../bytes/primitives.js';
import { type Attestation, compareAttestations } from './attestation.js';
import { applyOperation, compareOperations, type Operation } from './operation.js';

/** Attestations of a message and operations on it, both in canonical order without duplicates. */
export type Timestamp = {
  readonly message: Uint8Array;
  readonly attestations: readonly Attestation[];
  readonly steps: readonly Step[];
};

/** `timestamp` is that of the operation's result. */
export type Step = { readonly operation: Operation; readonly timestamp: Timestamp };

/** An attestation with the message that it is about. */
type Attested = { readonly message: Uint8Array; readonly attestation: Attestation };

/** Creates a timestamp from attestations and steps in any order. Merges duplicates. */
export function makeTimestamp(
  message: Uint8Array,
  attestations: readonly Attestation[],
  steps: readonly Step[] = [],
): Timestamp {
  return {
    message,
    attestations: sortUnique(attestations, compareAttestations, (known) => known),
    steps: sortUnique(
      steps,
      (a, b) => compareOperations(a.operation, b.operation),
      ({ operation, timestamp }, other) => ({
        operation,
        timestamp: mergeTimestamps(timestamp, other.timestamp),
      }),
    ),
  };
}

/**
 * Applies operations to a message, and continues with the timestamp that `continueWith` makes of the result. Throws
 * FormatError if a message becomes too long.
 */
export function timestampAfter(
  message: Uint8Array,
  [operation, ...rest]: readonly Operation[],
  continueWith: (result: Uint8Array) => Timestamp,
): Timestamp {
  if (operation === undefined) return continueWith(message);
  const timestamp = timestampAfter(applyOperation(operation, message), rest, continueWith);
  return { message, attestations: [], steps: [{ operation, timestamp }] };
}

/** Merges timestamps of one message; keeps every branch of both. Throws FormatError if the messages differ. */
export function mergeTimestamps(a: Timestamp, b: Timestamp): Timestamp {
  if (!equalBytes(a.message, b.message)) throw new FormatError('timestamps of different messages');
  return makeTimestamp(a.message, [...a.attestations, ...b.attestations], [...a.steps, ...b.steps]);
}

/** Merges `added` into each node of the tree with its message. */
export function graftTimestamp(tree: Timestamp, added: Timestamp): Timestamp {
  if (equalBytes(tree.message, added.message)) return mergeTimestamps(tree, added);
  const steps = tree.steps.map(({ operation, timestamp }) => ({
    operation,
    timestamp: graftTimestamp(timestamp, added),
  }));
  return { ...tree, steps };
}

/** Lists all attestations of a timestamp, in its order. */
export function attestationsOf({ message, attestations, steps }: Timestamp): Attested[] {
  return [
    ...attestations.map((attestation) => ({ message, attestation })),
    ...steps.flatMap(({ timestamp }) => attestationsOf(timestamp)),
  ];
}

/** The path to one of the timestamp's attestations, without other branches. Returns undefined if there is none. */
export function pathTo(timestamp: Timestamp, attestation: Attestation): Timestamp | undefined {
  const { message, attestations, steps } = timestamp;
  if (attestations.includes(attestation)) return makeTimestamp(message, [attestation]);
  for (const { operation, timestamp: next } of steps) {
    const path = pathTo(next, attestation);
    if (path !== undefined) return makeTimestamp(message, [], [{ operation, timestamp: path }]);
  }
  return undefined;
}

function sortUnique<T>(
  items: readonly T[],
  compare: (a: T, b: T) => number,
  combine: (a: T, b: T) => T,
): T[] {
  const unique: T[] = [];
  for (const item of items.toSorted(compare)) {
    const last = unique.at(-1);
    if (last !== undefined && compare(last, item) === 0) unique[unique.length - 1] = combine(last, item);
    else unique.push(item);
  }
  return unique;
}
