/** The key and chain of the embedded time-stamping authority: one PEM file, written once. */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readOptionalFile } from '../core/files/read-optional-file.js';
import { writeFileAtomic } from '../core/files/write-file-atomic.js';
import { type AuthorityKeys, type CaDeps, createAuthorityKeys } from './certificate-authority.js';

const FILE_NAME = 'timestamp-authority.pem';

/**
 * Reads the authority's keys from `dir`, or creates them. A crash leaves no file or a complete one. Only one process may
 * use the folder. Throws if the file is damaged.
 */
export async function loadAuthorityKeys(deps: CaDeps & { dir: string }): Promise<AuthorityKeys> {
  const path = join(deps.dir, FILE_NAME);
  const existing = await readOptionalFile(path);
  if (existing !== undefined) return parseAuthorityPem(existing, path);
  const keys = createAuthorityKeys(deps);
  await mkdir(deps.dir, { recursive: true, mode: 0o700 });
  await writeFileAtomic(path, authorityPem(keys));
  return keys;
}

/** PEM of a certificate in DER. */
export function certificatePem(der: Uint8Array): string {
  return new X509Certificate(der).toString();
}

function authorityPem({ privateKey, chain }: AuthorityKeys): string {
  return [privateKey.export({ type: 'pkcs8', format: 'pem' }), ...chain.map(certificatePem)].join('');
}

function parseAuthorityPem(pem: string, path: string): AuthorityKeys {
  try {
    const [signer, root, ...rest] =
      pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
    if (signer === undefined || root === undefined || rest.length > 0)
      throw new Error('not two certificates');
    const privateKey = createPrivateKey(pem);
    const [certificate, rootCertificate] = [new X509Certificate(signer), new X509Certificate(root)];
    if (!createPublicKey(privateKey).equals(certificate.publicKey))
      throw new Error('the key does not match the certificate');
    if (!certificate.verify(rootCertificate.publicKey))
      throw new Error('the certificate is not issued by the root');
    return { privateKey, chain: [certificate.raw, rootCertificate.raw] };
  } catch (cause) {
    throw new Error(`${path} is damaged; restore it, or remove it to start with a new authority`, { cause });
  }
}
