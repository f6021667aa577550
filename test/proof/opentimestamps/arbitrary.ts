/** Random timestamps. */
import fc from 'fast-check';
import { FormatError } from '../../../src/proof/bytes/format-error.js';
import type { Attestation } from '../../../src/proof/opentimestamps/attestation.js';
import {
  append,
  applyOperation,
  type Operation,
  prepend,
} from '../../../src/proof/opentimestamps/operation.js';
import { makeTimestamp, type Timestamp } from '../../../src/proof/opentimestamps/timestamp.js';

const argument = fc.uint8Array({ minLength: 1, maxLength: 200 });

const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.constantFrom(...[0x02, 0x03, 0x08, 0x67, 0xf2, 0xf3].map((tag) => ({ tag }))),
  argument.map(append),
  argument.map(prepend),
);

const URI_CHARACTERS = [...'ABCXYZabcxyz0189-._/:'];

const attestation: fc.Arbitrary<Attestation> = fc.oneof(
  fc.nat({ max: 2 ** 31 - 1 }).map((height) => ({ kind: 'bitcoin' as const, height })),
  fc
    .string({ unit: fc.constantFrom(...URI_CHARACTERS), maxLength: 60 })
    .map((uri) => ({ kind: 'pending' as const, uri })),
  // No tag of an attestation that other implementations know starts with 00.
  fc
    .record({
      tag: fc.uint8Array({ minLength: 7, maxLength: 7 }),
      payload: fc.uint8Array({ maxLength: 300 }),
    })
    .map(({ tag, payload }) => ({
      kind: 'unknown' as const,
      tag: `00${Buffer.from(tag).toString('hex')}`,
      payload,
    })),
);

/** What a timestamp is made of, whatever its message. */
type Shape = {
  attestations: readonly Attestation[];
  steps: readonly { operation: Operation; next: Shape }[];
};

const { shape } = fc.letrec<{ shape: Shape }>((tie) => ({
  shape: fc
    .record({
      attestations: fc.array(attestation, { maxLength: 3 }),
      steps: fc.oneof(
        { maxDepth: 6 },
        fc.constant<Shape['steps']>([]),
        fc.array(fc.record({ operation, next: tie('shape') }), { maxLength: 2 }),
      ),
      last: attestation,
    })
    .map(
      ({ attestations, steps, last }): Shape =>
        attestations.length + steps.length > 0 ? { attestations, steps } : { attestations: [last], steps },
    ),
}));

/** Random timestamps of a message. Branches whose messages would be too long end earlier. */
export function timestampOf(message: Uint8Array): fc.Arbitrary<Timestamp> {
  return shape.map((one) => grow(message, one));
}

function grow(message: Uint8Array, { attestations, steps }: Shape): Timestamp {
  const grown = steps.flatMap(({ operation: made, next }) => {
    const result = applied(made, message);
    return result === undefined ? [] : [{ operation: made, timestamp: grow(result, next) }];
  });
  const isEmpty = attestations.length + grown.length === 0;
  return makeTimestamp(message, isEmpty ? [{ kind: 'bitcoin', height: 1 }] : attestations, grown);
}

function applied(made: Operation, message: Uint8Array): Uint8Array | undefined {
  try {
    return applyOperation(made, message);
  } catch (error) {
    if (error instanceof FormatError) return undefined;
    throw error;
  }
}
