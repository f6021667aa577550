/** RFC 6962 inclusion proofs as operations of OpenTimestamps. */
import { concatBytes } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { append, type Operation, prepend, SHA256 } from './operation.js';

const NODE = Uint8Array.of(0x01);

/**
 * The operations that lead from a leaf hash at `index` to the root of a tree of `size` leaves (RFC 9162, section 2.1.3.2).
 * Throws FormatError if the proof has the wrong length.
 */
export function inclusionOperations(index: number, size: number, proof: readonly Uint8Array[]): Operation[] {
  const operations: Operation[] = [];
  let own = index;
  let last = size - 1;
  for (const sibling of proof) {
    if (last === 0) throw new FormatError('an inclusion proof is too long');
    if (own % 2 === 1 || own === last) {
      operations.push(prepend(concatBytes(NODE, sibling)), SHA256);
      while (own % 2 === 0 && own !== 0) [own, last] = [half(own), half(last)];
    } else {
      operations.push(prepend(NODE), append(sibling), SHA256);
    }
    [own, last] = [half(own), half(last)];
  }
  if (last !== 0) throw new FormatError('an inclusion proof is too short');
  return operations;
}

function half(n: number): number {
  return Math.floor(n / 2);
}
