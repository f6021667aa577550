import { join } from 'node:path';
import t, { type Test } from 'tap';
import { toPem } from '../../../src/proof/asn1/pem.js';
import { trustedRoot } from '../../../src/proof/bundle/trusted-root.js';
import { toHex } from '../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { ARTIFACT } from '../../proof/sample.js';
import { good, sample, service } from '../../proof/verifying.js';
import { runHere, runProcess } from '../../support/calling/run-cli.js';
import { makeSigner, messageBundle } from '../../support/witnesses/sigstore-log.js';

const DIGEST = `sha256:${toHex(sha256(ARTIFACT))}`;
const ROOT = trustedRoot([{ origin: service.origin, publicKey: service.log.publicKey }], []);

/** A folder with what the command reads, and the arguments with which it verifies. */
function folder(t: Test, more: Record<string, string> = {}) {
  const dir = t.testdir({
    artifact: Buffer.from(ARTIFACT),
    'bundle.json': JSON.stringify(sample.bundle.sigstoreBundle),
    'key.pem': toPem('PUBLIC KEY', service.dsse.publicKey),
    'root.json': JSON.stringify(ROOT),
    ...more,
  });
  const at = (name: string) => join(dir, name);
  const common = ['--bundle', at('bundle.json'), '--key', at('key.pem')];
  return {
    dir,
    at,
    common,
    args: ['verify-sigstore', at('artifact'), ...common, '--trusted-root', at('root.json')],
  };
}

t.test('a valid Sigstore bundle ends with exit code 0 and lists the checks made and not made', async (t) => {
  const { args, common } = folder(t);
  const { code, stdout, stderr } = await runProcess(args);
  t.match({ code, stderr }, { code: 0, stderr: '' });
  for (const name of ['shape', 'signature', 'artifact', 'entries', 'inclusion', 'checkpoint']) {
    t.match(stdout, new RegExp(`^ok +${name} +\\S`, 'm'), name);
  }
  t.match(stdout, /^not checked +timestamps +no time stamp is in the bundle$/m);
  t.match(stdout.trimEnd().split('\n').at(-1), /^This artifact is signed by the given key; .* Not checked: /);
  const untrusting = await runHere(['verify-sigstore', DIGEST, ...common, '--json']);
  const report = JSON.parse(untrusting.stdout);
  t.match(report, { verdict: 'verified', trusted_root: null, key: { algorithm: 'ECDSA P-256' } });
  t.match(
    report.steps.find(({ name }: { name: string }) => name === 'checkpoint'),
    { status: 'not_checked' },
  );
});

t.test('another file or another key ends with 1', async (t) => {
  const { args, at, common } = folder(t, { wrong: 'another', 'other.pem': makeSigner('P-256').pem });
  for (const wrong of [
    ['verify-sigstore', at('wrong'), ...common],
    ['verify-sigstore', `sha256:${'0'.repeat(64)}`, ...common],
    [...args, '--key', at('other.pem')],
    [...args, '--bundle', at('wrong')],
  ]) {
    const { code, stdout, stderr } = await runHere(wrong);
    t.match({ code, stderr }, { code: 1, stderr: '' });
    t.match(stdout.trimEnd().split('\n').at(-1), /^Not verified: /);
    t.equal(JSON.parse((await runHere([...wrong, '--json'])).stdout).verdict, 'not_verified');
  }
});

t.test('a bundle that cannot be checked ends with exit code 2 and the reason', async (t) => {
  const signer = makeSigner('ed25519');
  const message = JSON.stringify(messageBundle(Buffer.from(ARTIFACT), signer));
  const certified = structuredClone(sample.bundle.sigstoreBundle) as { verificationMaterial?: object };
  certified.verificationMaterial = { certificate: { rawBytes: 'AA==' } };
  const { args, at, common, dir } = folder(t, {
    message,
    'signer.pem': signer.pem,
    empty: '',
    certified: JSON.stringify(certified),
    roots: JSON.stringify(good),
  });
  const table: [args: readonly string[], message: RegExp][] = [
    [['verify-sigstore', at('gone'), ...common], /gone cannot be read: ENOENT/],
    [['verify-sigstore', dir, ...common], /is a directory/],
    [['verify-sigstore', 'sha256:00', ...common], /sha256: is not followed by 64 hex digits/],
    [[...args, '--bundle', at('gone')], /gone cannot be read: ENOENT/],
    [[...args, '--bundle', '/dev/zero'], /\/dev\/zero is too large for a Sigstore bundle: over 4 MiB/],
    [[...args, '--key', at('empty')], /empty: not PEM of one PUBLIC KEY/],
    [[...args, '--key', dir], /is a directory/],
    [[...args, '--trusted-root', at('empty')], /empty: is empty/],
    [[...args, '--trusted-root', at('roots')], /roots: \/mediaType: is missing/],
    [
      ['verify-sigstore', at('artifact'), '--key', at('key.pem')],
      /required option '--bundle <file>' not specified/,
    ],
  ];
  for (const [wrong, message] of table) {
    const { code, stdout, stderr } = await runHere(wrong);
    t.match({ code, stdout, stderr }, { code: 2, stdout: '', stderr: message });
  }
  const unchecked = await runHere([...args, '--bundle', at('certified')]);
  t.match(unchecked, { code: 2, stdout: /^Could not be checked: it is signed under a certificate/m });
  const wanting = await runHere([...args, '--require-timestamp']);
  t.match(wanting, { code: 2, stdout: /^Could not be checked: no time stamp is in the bundle/m });
  const digestOnly = ['verify-sigstore', DIGEST, '--bundle', at('message'), '--key', at('signer.pem')];
  const { code, stdout } = await runHere(digestOnly);
  t.match(
    { code, stdout },
    { code: 2, stdout: /^Could not be checked: the signature is over the file itself/m },
  );
  t.equal((await runHere(digestOnly.with(1, at('artifact')))).code, 0, 'with the file it can');
});
