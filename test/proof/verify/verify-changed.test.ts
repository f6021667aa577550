import t from 'tap';
import { type Bundle, changed, failures, STEPS, sample, verify } from '../verifying.js';
import { CHANGES } from './changes.js';

t.test(
  'a changed bundle fails at the step that the change concerns, and every step is still reported',
  async (t) => {
    for (const [code, change] of CHANGES) {
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

t.test('a bundle of another version with any content cannot be checked', async (t) => {
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

t.test('another first_index of the batch is named as what the detail of the log contradicts', async (t) => {
  const result = await verify(changed((b) => Object.assign(b.batch, { first_index: 1 })));
  t.match(result.summary, 'log_index of the detail is not first_index of the batch');
});

t.test('an inclusion path that is cut off in one of its two places is named in both', async (t) => {
  for (const cut of [
    (b: Bundle) => b.checkpoints[0]!.inclusion_proof.pop(),
    (b: Bundle) => b.sigstore_bundle.verificationMaterial.tlogEntries[0]!.inclusionProof.hashes.pop(),
  ]) {
    const { summary } = await verify(changed(cut));
    t.match(
      summary,
      /tlogEntries\/0\/inclusionProof\/hashes\/\d+ differs from \/checkpoints\/0\/inclusion_proof/,
    );
  }
});

t.test('a misshapen bundle is rejected with every wrong member named', async (t) => {
  const result = await verify(
    changed((b) => {
      Object.assign(b, { media_type: 'x' });
      Object.assign(b.submission, { id: 'sub_1', leaf_sha256: 'AB', environment: [] });
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
      Object.assign(b.sigstore_bundle, { mediaType: 'x' });
      b.sigstore_bundle.verificationMaterial.tlogEntries[0]!.inclusionProof.hashes.push('AAAA');
    }),
  );
  t.strictSame(
    second.steps[0]!.checks.map(({ path }) => path).sort(),
    [
      '/batch/first_index',
      '/batch/root_hash',
      '/media_type',
      '/sigstore_bundle/mediaType',
      `/sigstore_bundle/verificationMaterial/tlogEntries/0/inclusionProof/hashes/${sample.bundle.checkpoints[0]!.inclusionProof.length}`,
      '/submission/id',
      '/submission/leaf_sha256',
    ].sort(),
    'what is wrong beside the rest',
  );
  t.ok(second.steps.slice(1).every(({ status }) => status === 'not_checked'));
});
