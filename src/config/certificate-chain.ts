import { X509Certificate } from 'node:crypto';
import { InvalidValue } from './invalid-value.js';
import type { SettingType } from './settings.js';

const MAX_CHAIN = 8;

/** Certificate chain of a time-stamping authority in PEM, leaf first. Verifies that each is signed by the next. */
export const certificateChain: SettingType<string[]> = {
  expected: 'a PEM certificate chain: the signing certificate first, each issued by the next, the root last',
  secret: true,
  parse: parseChain,
};

function parseChain(pem: string): string[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length < 2 || blocks.length > MAX_CHAIN) {
    throw new InvalidValue(`it has ${blocks.length} certificates, not 2 to ${MAX_CHAIN}`);
  }
  const certificates = blocks.map(readCertificate);
  const stray = certificates.findIndex((one, index) => !isIssuedBy(one, certificates[index + 1] ?? one));
  if (stray !== -1) throw new InvalidValue(`certificate ${stray + 1} is not issued by the next one`);
  return blocks.map((block) => `${block}\n`);
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

function readCertificate(pem: string, index: number): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch {
    throw new InvalidValue(`certificate ${index + 1} cannot be read`);
  }
}
