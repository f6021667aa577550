import { fromBase64 } from '../../../../src/proof/bytes/encoding.js';
import { signCheckpoint } from '../../../../src/proof/log/checkpoint.js';
import { BATCH, ed25519 } from '../../sample.js';
import { type Bundle, service } from '../../verifying.js';
import { mine } from '../public-sample.js';
import { type Edits, entry, envelope, material, passes } from './edits.js';
import { forgers, resign } from './forger.js';

/** A checkpoint of the batch's size with another root, by a log key of the forger's. */
function ownCheckpoint(rootHash: Uint8Array): string {
  return signCheckpoint({ origin: service.origin, size: BATCH.treeSize, rootHash }, ed25519());
}

function setCheckpoint(bundle: Bundle, note: string): void {
  bundle.checkpoints[0]!.note = note;
  Object.assign(entry(bundle).inclusionProof.checkpoint, { envelope: note });
}

/** Keys of the forger's. */
export const OWN_KEYS: Edits = [
  ['a result that passed, signed by a key of the forger', resign(passes)],
  [
    'that under the hint of the trusted key',
    resign(passes, (b) =>
      Object.assign(material(b).publicKey, { hint: material(mine as unknown as Bundle).publicKey.hint }),
    ),
  ],
  [
    'that beside the trusted signature',
    (b) => {
      const forged = structuredClone(b);
      resign(passes)(forged);
      envelope(b).signatures.push(envelope(forged).signatures[0]!);
    },
  ],
  [
    'a checkpoint of the same root, signed by a key of the forger',
    (b) => setCheckpoint(b, ownCheckpoint(fromBase64(entry(b).inclusionProof.rootHash))),
  ],
  ['a whole bundle by keys of the forger', (b) => Object.assign(b, structuredClone(forgers.mine))],
  [
    'that with the trusted hint',
    (b) => {
      const hint = material(b).publicKey.hint;
      Object.assign(b, structuredClone(forgers.mine));
      Object.assign(material(b).publicKey, { hint });
    },
  ],
  [
    'the trusted statement in a log of the forger',
    (b) => Object.assign(b, { checkpoints: structuredClone(forgers.mine.checkpoints) }),
  ],
  [
    'evidence by an authority of the forger under the trusted name',
    (b) =>
      Object.assign(b.witnesses[1]!, {
        evidence: forgers.mine.witnesses[1]!.evidence,
        detail: forgers.mine.witnesses[1]!.detail,
      }),
  ],
];
