/** Checks of our proofs by tools that know nothing of us: Sigstore's verifier and openssl. */
import { execFileSync } from 'node:child_process';
import { createHash, createPublicKey } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleFromJSON, type SerializedBundle } from '@sigstore/bundle';
import { TrustedRoot } from '@sigstore/protobuf-specs';
import { toSignedEntity, toTrustMaterial, Verifier, type VerifierOptions } from '@sigstore/verify';
import { CertificateChainVerifier } from '@sigstore/verify/dist/key/certificate.js';
import { OPENSSL } from '../foreign/openssl.js';

/** Without a time stamp over the signature, which Sigstore's verifier wants by default. */
const NO_STAMP = { timestampThreshold: 0 };

/** Throws unless `@sigstore/verify` accepts a Sigstore bundle under a trusted root and these DSSE keys, in PEM. */
export function verifyWithSigstore(
  bundle: unknown,
  trustedRoot: unknown,
  dsseKeysPem: readonly string[],
  options: VerifierOptions = NO_STAMP,
): void {
  const material = toTrustMaterial(TrustedRoot.fromJSON(trustedRoot), keyFinder(dsseKeysPem));
  const verifier = new Verifier(material, options);
  verifier.verify(toSignedEntity(bundleFromJSON(bundle as SerializedBundle)));
}

/** Throws unless `@sigstore/verify` accepts the signature of a DSSE envelope, which is in no log, by this key in PEM. */
export function verifyEnvelopeWithSigstore(
  dsseEnvelope: SerializedBundle['dsseEnvelope'],
  keyPem: string,
): void {
  const hint = keyId(createPublicKey(keyPem));
  const bundle = {
    mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
    verificationMaterial: { publicKey: { hint }, tlogEntries: [], timestampVerificationData: undefined },
    dsseEnvelope,
  };
  const material = toTrustMaterial(TrustedRoot.fromJSON({}), keyFinder([keyPem]));
  const verifier = new Verifier(material, { tlogThreshold: 0, timestampThreshold: 0 });
  verifier.verify(toSignedEntity(bundleFromJSON(bundle as unknown as SerializedBundle)));
}

function keyFinder(keysPem: readonly string[]) {
  const keys = keysPem.map((pem) => createPublicKey(pem));
  return (hint: string) => {
    const key = keys.find((candidate) => keyId(candidate) === hint);
    if (key === undefined) throw new Error(`no key ${hint}`);
    return { publicKey: key, validFor: () => true };
  };
}

/** Whether `@sigstore/verify` accepts a chain (DER, leaf first, root last) at this time. It knows no RSA-PSS. */
export function sigstoreAcceptsChain(chain: readonly Uint8Array[], at: Date): boolean {
  const certificates = chain.map((der) => ({ rawBytes: Buffer.from(der).toString('base64') }));
  const authority = { certChain: { certificates }, validFor: { start: '1970-01-01T00:00:00Z' } };
  try {
    const material = toTrustMaterial(TrustedRoot.fromJSON({ timestampAuthorities: [authority] }));
    const [leaf, ...issuers] = material.timestampAuthorities[0]?.certChain ?? [];
    if (leaf === undefined) return false;
    new CertificateChainVerifier({ untrustedCert: leaf, trustedCerts: issuers, timestamp: at }).verify();
    return true;
  } catch {
    return false;
  }
}

function keyId(key: ReturnType<typeof createPublicKey>): string {
  const der = key.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(der).digest('base64');
}

/**
 * Throws unless `openssl ts -verify` accepts a TimeStampResp over these bytes under a chain in PEM, leaf first. Says
 * what openssl printed.
 */
export function verifyWithOpenssl(
  data: Uint8Array,
  response: Uint8Array,
  chainPem: readonly string[],
): string {
  const dir = mkdtempSync(join(tmpdir(), 'openssl-ts-'));
  const file = (name: string, content: string | Uint8Array) => {
    writeFileSync(join(dir, name), content);
    return join(dir, name);
  };
  try {
    const intermediates = chainPem.slice(1, -1).join('');
    const untrusted = intermediates === '' ? [] : ['-untrusted', file('untrusted.pem', intermediates)];
    const trusted = ['-CAfile', file('root.pem', chainPem.at(-1) ?? ''), ...untrusted];
    const args = [
      'ts',
      '-verify',
      '-data',
      file('data', data),
      '-in',
      file('response.tsr', response),
      ...trusted,
    ];
    return execFileSync(OPENSSL, args, { encoding: 'utf8', stdio: 'pipe' });
  } finally {
    rmSync(dir, { recursive: true });
  }
}
