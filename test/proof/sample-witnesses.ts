/** What witnesses say of a sample's checkpoints. */
import { randomBytes } from 'node:crypto';
import { WitnessKind } from '../../gen/attestation/v1/bundle_pb.js';
import { LOG_WITNESS_NAME, type WitnessParts } from '../../src/proof/bundle/bundle.js';
import { utf8 } from '../../src/proof/bytes/encoding.js';
import { parseCheckpoint } from '../../src/proof/log/checkpoint.js';
import { cosign } from '../../src/proof/log/cosignature.js';
import { encodeSignatureLine, ML_DSA_44_NOTE_KEY, parseNote } from '../../src/proof/log/note.js';
import { requestTimestamp } from '../../src/server/witnessing/clients/rfc3161.js';
import { bitcoinEvidence } from './opentimestamps/bitcoin-evidence.js';
import { BATCH, LATER_SIZE, NOW, type Service } from './sample.js';

const COSIGNED_AT = new Date('2025-06-07T12:00:03.000Z');
/** A cosignature's time has whole seconds. */
export const COSIGNATURE_PROVES = new Date('2025-06-07T12:00:04.000Z');

/** Which witnesses the bundle has: the log and the authority are on the batch's checkpoint, the cosigner on the later one. */
export type SampleWitness = 'log' | 'tsa' | 'cosigner' | 'calendar';

/** Asks one of them about the notes of the checkpoints. */
export async function ask(
  witness: SampleWitness,
  service: Service,
  notes: readonly string[],
): Promise<WitnessParts> {
  const [first = '', later = ''] = notes;
  const body = parseNote(first).text;
  const base = { treeSize: BATCH.treeSize, detail: {}, landedAt: NOW };
  switch (witness) {
    case 'log':
      return {
        ...base,
        name: LOG_WITNESS_NAME,
        kind: WitnessKind.TRANSPARENCY_LOG,
        evidence: utf8(first),
        detail: { log_index: BATCH.firstIndex },
      };
    case 'calendar': {
      const { evidence, detail } = bitcoinEvidence(first);
      return { ...base, name: 'calendar', kind: WitnessKind.OPENTIMESTAMPS, evidence, detail };
    }
    case 'cosigner': {
      const { name, mlDsa } = service.cosigner;
      const cosigners = [service.cosigner, ...(mlDsa ? [{ name, type: ML_DSA_44_NOTE_KEY, ...mlDsa }] : [])];
      const lines = cosigners.map((cosigner) =>
        encodeSignatureLine(cosign(parseCheckpoint(later).note.text, COSIGNED_AT.getTime() / 1000, cosigner)),
      );
      return {
        ...base,
        name: 'w1',
        kind: WitnessKind.LOG_WITNESS,
        treeSize: LATER_SIZE,
        evidence: utf8(lines.join('')),
      };
    }
    case 'tsa': {
      const question = {
        message: utf8(body),
        nonce: new Uint8Array(randomBytes(16)),
        chains: [service.authority.certChain],
      };
      const { evidence, detail } = await requestTimestamp(
        { send: (request) => service.authority.respond(request) },
        question,
        new AbortController().signal,
      );
      return { ...base, name: 'tsa', kind: WitnessKind.RFC3161, evidence, detail };
    }
  }
}
