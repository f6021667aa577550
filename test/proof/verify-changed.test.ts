import t from 'tap';
import { toBase64, utf8 } from '../../src/proof/bytes/encoding.js';
import { encodeSignatureLine, parseNote } from '../../src/proof/log/note.js';
import { ed25519 } from './sample.js';
import { type Bundle, changed, failures, otherGood, STEPS, sample, verify } from './verifying.js';

t.test(
  'a changed bundle fails at the step that the change concerns, and every step is still reported',
  async (t) => {
    const entry = (bundle: Bundle) => bundle.sigstore_bundle.verificationMaterial.tlogEntries[0]!;
    const statement = Buffer.from(otherGood.sigstore_bundle.dsseEnvelope.payload, 'base64').toString();
    const cases: [code: string, change: (bundle: Bundle) => unknown][] = [
      ['statement.mismatch', (b) => Object.assign(b.submission, { id: 'sub_01JX5WQ3ZZZZZZZZZZZZZZZZZ0' })],
      [
        'statement.mismatch',
        (b) => Object.assign(b.submission, { submitted_at: '2025-06-07T11:59:59.124Z' }),
      ],
      [
        'statement.mismatch',
        (b) => Object.assign(b.submission, { submitted_at: '2025-06-07T11:59:59.123001Z' }),
      ],
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
      ['witness.detail_mismatch', (b) => Object.assign(b.witnesses[1]!.detail, { note: 'more' })],
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
    for (const [code, change] of cases) {
      const result = await verify(changed(change));
      t.equal(result.verdict, 'not_verified', code);
      t.ok(failures(result).includes(code), `${code} in ${failures(result)}`);
      t.strictSame(
        result.steps.map(({ name }) => name),
        STEPS,
      );
      t.match(result.summary, /^Not verified: /);
    }
  },
);

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

t.test('a bundle of another version could not be checked, whatever else is in it', async (t) => {
  for (const member of ['media_type', 'mediaType']) {
    const type = 'application/vnd.attestation-service.bundle.v2+json';
    const result = await verify({ [member]: type, proof: { of: 'tomorrow' } });
    t.match(result, { verdict: 'could_not_check', steps: [{ code: 'shape.other_version' }] });
    t.match(result.summary, type);
  }
  for (const type of ['application/vnd.attestation-service.bundle.v2+json x', 'x.bundle.v2+json', 2]) {
    const result = await verify(changed((b) => Object.assign(b, { media_type: type })));
    t.equal(result.verdict, 'not_verified', `${type}`);
  }
});

t.test('a misshapen bundle is refused with every wrong member named', async (t) => {
  const result = await verify(
    changed((b) => {
      Object.assign(b, { media_type: 'x', extra: 1 });
      Object.assign(b.submission, { id: 'sub_1', leaf_sha256: 'AB', environment: 'prod' });
      Object.assign(b.checkpoints[0]!, { tree_size: '01' });
      b.checkpoints[1]!.inclusion_proof[0] = 'AB==';
      Object.assign(b.witnesses[0]!, { kind: 3, landed_at: 'yesterday', evidence: 7 });
    }),
  );
  t.equal(result.verdict, 'not_verified');
  t.strictSame(
    result.steps[0]!.checks.map(({ path }) => path).sort(),
    [
      '/checkpoints/0/tree_size',
      '/checkpoints/1/inclusion_proof/0',
      '/extra',
      '/submission/environment',
      '/witnesses/0/evidence',
      '/witnesses/0/kind',
      '/witnesses/0/landed_at',
    ].sort(),
    'what is wrong by itself',
  );
  const second = await verify(
    changed((b) => {
      Object.assign(b, { media_type: 'x' });
      Object.assign(b.submission, { id: 'sub_1', leaf_sha256: 'AB' });
      Object.assign(b.batch, { root_hash: '00'.repeat(32), first_index: 1000 });
      Object.assign(b.sigstore_bundle, { mediaType: 'x', extra: {} });
      b.sigstore_bundle.verificationMaterial.tlogEntries[0]!.inclusionProof.hashes.push('AAAA');
    }),
  );
  t.strictSame(
    second.steps[0]!.checks.map(({ path }) => path).sort(),
    [
      '/batch/first_index',
      '/batch/root_hash',
      '/media_type',
      '/sigstore_bundle/extra',
      '/sigstore_bundle/mediaType',
      `/sigstore_bundle/verificationMaterial/tlogEntries/0/inclusionProof/hashes/${sample.bundle.checkpoints[0]!.inclusionProof.length}`,
      '/submission/id',
      '/submission/leaf_sha256',
    ].sort(),
    'what is wrong beside the rest',
  );
  t.ok(second.steps.slice(1).every(({ status }) => status === 'not_checked'));
});
