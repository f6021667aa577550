/** The text form of an inclusion proof, c2sp.org/tlog-proof@v1, for any verifier of transparency logs. */
import { toBase64 } from '../bytes/encoding.js';

const HEADER = 'c2sp.org/tlog-proof@v1';

/** The proof that the leaf at `index` is in the tree of a checkpoint, given as its signed note. */
export function tlogProof(index: number, inclusionProof: readonly Uint8Array[], note: string): string {
  return `${[HEADER, `index ${index}`, ...inclusionProof.map(toBase64)].join('\n')}\n\n${note}`;
}
