/** Changes of a good bundle, each with the check that catches it: a table for the verifier and for the verify page. */
import { toBase64, utf8 } from '../../../src/proof/bytes/encoding.js';
import { encodeSignatureLine, parseNote } from '../../../src/proof/log/note.js';
import { ed25519 } from '../sample.js';
import { type Bundle, otherGood } from '../verifying.js';

const entry = (bundle: Bundle) => bundle.sigstore_bundle.verificationMaterial.tlogEntries[0]!;
const statement = Buffer.from(otherGood.sigstore_bundle.dsseEnvelope.payload, 'base64').toString();
/** What is done to a good bundle, and the code of the check that fails by it. */
export const CHANGES: readonly [code: string, change: (bundle: Bundle) => unknown][] = [
  ['statement.mismatch', (b) => Object.assign(b.submission, { id: 'sub_01JX5WQ3ZZZZZZZZZZZZZZZZZ0' })],
  ['statement.mismatch', (b) => Object.assign(b.submission, { submitted_at: '2025-06-07T11:59:59.124Z' })],
  ['statement.mismatch', (b) => Object.assign(b.submission, { submitted_at: '2025-06-07T11:59:59.123001Z' })],
  ['statement.mismatch', (b) => Object.assign(b.submission, { environment: 'test' })],
  ['statement.mismatch', (b) => Object.assign(b.submission, { artifact_sha256: '00'.repeat(32) })],
  [
    'statement.malformed',
    (b) => Object.assign(b.sigstore_bundle.dsseEnvelope, { payload: toBase64(utf8(`${statement} `)) }),
  ],
  [
    'statement.malformed',
    (b) => Object.assign(b.sigstore_bundle.dsseEnvelope, { payload: toBase64(utf8('{}')) }),
  ],
  ['statement.malformed', (b) => Object.assign(b.sigstore_bundle.dsseEnvelope, { payload: '' })],
  [
    'statement.malformed',
    (b) => Object.assign(b.sigstore_bundle.dsseEnvelope, { payload: toBase64(utf8('['.repeat(12_000))) }),
  ],
  [
    'signature.invalid',
    (b) =>
      Object.assign(b.sigstore_bundle.dsseEnvelope, {
        payload: otherGood.sigstore_bundle.dsseEnvelope.payload,
      }),
  ],
  [
    'signature.invalid',
    (b) =>
      Object.assign(b.sigstore_bundle.dsseEnvelope.signatures[0]!, {
        sig: otherGood.sigstore_bundle.dsseEnvelope.signatures[0]!.sig,
      }),
  ],
  [
    'leaf.body_mismatch',
    (b) => Object.assign(entry(b), { canonicalizedBody: toBase64(utf8('another leaf')) }),
  ],
  ['shape.invalid', (b) => Object.assign(entry(b).kindVersion!, { kind: 'dsse' })],
  ['shape.invalid', (b) => Object.assign(entry(b).kindVersion!, { version: '0.0.3' })],
  ['shape.invalid', (b) => Object.assign(entry(b).inclusionProof!, { treeSize: '1' })],
  [
    'shape.invalid',
    (b) => Object.assign(entry(b).inclusionProof!, { rootHash: toBase64(new Uint8Array(32)) }),
  ],
  ['leaf.hash_mismatch', (b) => Object.assign(b.submission, { leaf_sha256: '00'.repeat(32) })],
  [
    'inclusion.invalid',
    (b) => Object.assign(b.checkpoints[1]!, { inclusion_proof: b.checkpoints[0]!.inclusion_proof }),
  ],
  ['inclusion.invalid', (b) => b.checkpoints[1]!.inclusion_proof.pop()],
  ['inclusion.not_in_batch', (b) => Object.assign(b.batch, { first_index: 701 })],
  [
    'checkpoint.bad_signature',
    (b) => Object.assign(b.checkpoints[1]!, { note: resigned(b.checkpoints[1]!.note) }),
  ],
  ['checkpoint.bad_cosignature', (b) => spoilCosignature(b)],
  ['witness.no_checkpoint', (b) => b.checkpoints.pop()],
  ['witness.wrong_name', (b) => Object.assign(b.witnesses[0]!, { name: 'tsa2' })],
  [
    'witness.not_in_note',
    (b) => Object.assign(b.witnesses[0]!, { evidence: toBase64(utf8(b.checkpoints[1]!.note)) }),
  ],
  ['witness.detail_mismatch', (b) => Object.assign(b.witnesses[0]!.detail, { log_index: 651 })],
  [
    'witness.rfc3161.imprint_mismatch',
    (b) => Object.assign(b.witnesses[1]!, { evidence: otherGood.witnesses[1]!.evidence, detail: {} }),
  ],
  ['witness.rfc3161.imprint_mismatch', (b) => Object.assign(b.witnesses[1]!, { tree_size: 1300 })],
  ['witness.rfc3161.nonce_mismatch', (b) => Object.assign(b.witnesses[1]!.detail, { nonce: '00' })],
  ['witness.rfc3161.malformed', (b) => Object.assign(b.witnesses[1]!, { evidence: '' })],
  [
    'witness.detail_mismatch',
    (b) => Object.assign(b.witnesses[1]!.detail, { gen_time: '2024-06-07T12:00:01.000Z' }),
  ],
  ['witness.malformed', (b) => Object.assign(b.witnesses[1]!.detail, { nonce: 'zz' })],
  [
    'witness.not_in_note',
    (b) => Object.assign(b.witnesses[2]!, { evidence: otherGood.witnesses[2]!.evidence }),
  ],
  ['witness.wrong_name', (b) => Object.assign(b.witnesses[1]!, { name: 'tsa2' })],
  ['witness.wrong_name', (b) => Object.assign(b.witnesses[2]!, { name: 'w2' })],
  ['witness.not_in_note', (b) => Object.assign(b.witnesses[2]!, { tree_size: 1000 })],
  ['witness.malformed', (b) => Object.assign(b.witnesses[2]!, { evidence: '' })],
  ['policy.missing_witness', (b) => b.witnesses.splice(1, 1)],
];
/** The same checkpoint with its log's line replaced by a signature of nobody. */
function resigned(note: string): string {
  const [line] = parseNote(note).signatures;
  const forged = encodeSignatureLine({ ...line!, signature: ed25519().sign(utf8(parseNote(note).text)) });
  return note.replace(encodeSignatureLine(line!), forged);
}

function spoilCosignature(bundle: Bundle): void {
  const line = parseNote(bundle.checkpoints[1]!.note).signatures[1]!;
  const spoiled = encodeSignatureLine({
    ...line,
    signature: line.signature.with(20, line.signature[20]! ^ 1),
  });
  bundle.checkpoints[1]!.note = bundle.checkpoints[1]!.note.replace(encodeSignatureLine(line), spoiled);
  bundle.witnesses[2]!.evidence = toBase64(utf8(spoiled));
}
