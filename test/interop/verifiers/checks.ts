/** Further verifiers of the table in docs/verifying.md, and those that accept no signature by a key. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run, type Said } from '../command.js';
import { accepting, type Row, refusing } from '../rows.js';
import { fetchText, type Scene } from '../scene.js';
import { sigstoreGo } from '../sigstore-checks.js';
import { PYTHON, tool } from '../tools.js';

const READ_BUNDLE = `
import sys
from sigstore.models import Bundle
with open(sys.argv[1]) as file:
    Bundle.from_json(file.read())
`;

const ISSUER = 'https://token.actions.githubusercontent.com';
const SUBJECT = 'https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main';

/** The time stamps of the bundle, for Notary Project's library. */
export async function checkTokens({ dir, bundle }: Scene): Promise<Row[]> {
  const { dsseEnvelope, verificationMaterial } = bundle.sigstore_bundle;
  const [stamp] = verificationMaterial.timestampVerificationData?.rfc3161Timestamps ?? [];
  await writeFile(join(dir, 'signature.tsr'), Buffer.from(stamp?.signedTimestamp ?? '', 'base64'));
  await writeFile(join(dir, 'signature.der'), Buffer.from(dsseEnvelope.signatures[0]?.sig ?? '', 'base64'));
  const read = (response: string, data: string) =>
    run(tool('read-token'), [response, data, 'chain.pem'], { cwd: dir });
  const says = [/^tspclient-go: /];
  return [
    accepting(
      'tspclient-go',
      'the stamp of the checkpoint',
      await read('evidence.tsr', 'checkpoint-body.txt'),
      says,
    ),
    accepting(
      'tspclient-go',
      'the stamp of the signature',
      await read('signature.tsr', 'signature.der'),
      says,
    ),
    refusing(
      'tspclient-go',
      'the stamp of the checkpoint, over the signature',
      await read('evidence.tsr', 'signature.der'),
    ),
  ];
}

/** The C2SP proof of the leaf, for torchwood. */
export async function checkProof({ dir, service, apiKey, bundle }: Scene): Promise<Row[]> {
  const headers = { authorization: `Bearer ${apiKey}` };
  const url = `${service.baseUrl}/v1/attestations/${bundle.submission.id}/bundle.tlog-proof`;
  const [entry] = bundle.sigstore_bundle.verificationMaterial.tlogEntries;
  await writeFile(join(dir, 'bundle.tlog-proof'), await fetchText(url, headers));
  await writeFile(join(dir, 'policy'), await fetchText(`${service.verifyUrl}/policy`));
  await writeFile(join(dir, 'proven-leaf'), Buffer.from(entry?.canonicalizedBody ?? '', 'base64'));
  const verify = (leaf: string): Promise<Said> =>
    run('sh', ['-c', `exec "${tool('check-proof')}" policy ${leaf} < bundle.tlog-proof`], { cwd: dir });
  return [
    accepting('torchwood', 'a tlog-proof, by our policy', await verify('proven-leaf'), [/is in the log/]),
    refusing('torchwood', 'a tlog-proof, of another leaf', await verify('report.json')),
  ];
}

/** Verifiers that want the certificate of an identity, which our bundles do not have. */
export async function checkKeyless({ dir }: Scene): Promise<Row[]> {
  const python = await run(join(PYTHON, 'bin/python'), ['-c', READ_BUNDLE, 'sigstore.json'], { cwd: dir });
  const signer = ['--certificate-identity', SUBJECT, '--certificate-oidc-issuer', ISSUER];
  const files = ['--bundle', 'sigstore.json', '--trusted-root', 'trusted_root.json', 'report.json'];
  const args = [
    'verify-blob-attestation',
    ...signer,
    '--type',
    'urn:attestation-service:submission:v1',
    ...files,
  ];
  const keyless = await run(tool('cosign'), args, { cwd: dir });
  const asByGh = await sigstoreGo(dir, {}, '-identity', SUBJECT);
  return [
    refusing('sigstore-python', 'the bundle', python, [/expected certificate in bundle/]),
    refusing('cosign', 'the bundle, without --key', keyless, [/public key not found/]),
    refusing('sigstore-go', 'the bundle, a certificate wanted as by gh', asByGh, [/certificate/]),
  ];
}
