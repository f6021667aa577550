import { type Bundle, good, otherGood } from '../../verifying.js';
import { theirs } from '../public-sample.js';
import { type Edits, entry, envelope, material, sigstore, stamps } from './edits.js';

/** Parts of other submissions, of the same batch or of a private bundle. */
export const SPLICED: Edits = [
  [
    'the signature of another submission',
    (b) => Object.assign(envelope(b), { signatures: envelope(theirs).signatures }),
  ],
  [
    'the envelope of another submission',
    (b) => Object.assign(sigstore(b), { dsseEnvelope: envelope(theirs) }),
  ],
  [
    'the Sigstore bundle of another submission',
    (b) => Object.assign(b, { sigstore_bundle: sigstore(theirs) }),
  ],
  [
    'the log entry of another submission',
    (b) => Object.assign(material(b), { tlogEntries: material(theirs).tlogEntries }),
  ],
  [
    'the leaf record of another submission',
    (b) => Object.assign(entry(b), { canonicalizedBody: entry(theirs).canonicalizedBody }),
  ],
  ['the index of another submission', (b) => Object.assign(entry(b), { logIndex: entry(theirs).logIndex })],
  [
    'the inclusion proof of another submission',
    (b) => Object.assign(b.checkpoints[0]!, { inclusion_proof: theirs.checkpoints[0]!.inclusion_proof }),
  ],
  [
    'the later proof of another submission',
    (b) => Object.assign(b.checkpoints[1]!, { inclusion_proof: theirs.checkpoints[1]!.inclusion_proof }),
  ],
  ['the submission of another bundle', (b) => Object.assign(b, { submission: theirs.submission })],
  ['the checkpoints of another log', (b) => Object.assign(b, { checkpoints: otherGood.checkpoints })],
  [
    'the evidence of another log',
    (b) => Object.assign(b.witnesses[1]!, { evidence: otherGood.witnesses[1]!.evidence, detail: {} }),
  ],
  [
    'the stamp of another submission',
    (b) => Object.assign(stamps(b), { timestampVerificationData: stamps(theirs).timestampVerificationData }),
  ],
  [
    'a stamp over the checkpoint in place of the signature',
    (b) =>
      Object.assign(stamps(b).timestampVerificationData.rfc3161Timestamps[0], {
        signedTimestamp: b.witnesses[1]!.evidence,
      }),
  ],
  [
    'a stamp over the signature in place of the checkpoint',
    (b) =>
      Object.assign(b.witnesses[1]!, {
        evidence: stamps(b).timestampVerificationData.rfc3161Timestamps[0].signedTimestamp,
        detail: {},
      }),
  ],
  [
    'the envelope of a private submission',
    (b) =>
      Object.assign(sigstore(b), { dsseEnvelope: (good as unknown as Bundle).sigstore_bundle.dsseEnvelope }),
  ],
];
