/** A token's signer: its certificate, found by the signer identifier, and the certificate's key usage. */
import { parseDer, TAG } from '../asn1/der.js';
import { expectTag, integerOctets, objectIdentifier } from '../asn1/der-read.js';
import { equalBytes } from '../bytes/primitives.js';
import { type Certificate, findExtension, parseCertificate } from './certificate.js';
import { TimestampError, type TimestampErrorCode } from './error.js';
import type { SignerId, Token } from './token.js';

const SUBJECT_KEY_IDENTIFIER_OID = '2.5.29.14';
const KEY_USAGE_OID = '2.5.29.15';
const EXTENDED_KEY_USAGE_OID = '2.5.29.37';
const TIME_STAMPING_OID = '1.3.6.1.5.5.7.3.8';

/**
 * Finds the certificates that match the signer identifier, in the token's, or in `others` if the token has none. Throws
 * TimestampError `signer_missing` if none matches.
 */
export function signerCandidates(token: Token, others: readonly Uint8Array[]): Certificate[] {
  const carried = token.certificates.length > 0 ? token.certificates : others;
  const named = carried
    .map(parseCertificate)
    .filter((certificate) => isNamedBy(token.signer.sid, certificate));
  if (named.length === 0) throw new TimestampError('signer_missing', "the signer's certificate is not there");
  return named;
}

/** Whether the signer identifier names this certificate. */
export function isNamedBy(sid: SignerId, certificate: Certificate): boolean {
  if ('issuer' in sid) {
    const serial = integerOctets(sid.serialNode, 'serialNumber');
    return equalBytes(sid.issuer, certificate.issuer.raw) && equalBytes(serial, certificate.serial);
  }
  const extension = findExtension(certificate, SUBJECT_KEY_IDENTIFIER_OID);
  if (extension === undefined) return false;
  const identifier = parseDer(extension.extnValue, extension.extnValue.length);
  return identifier.tag === TAG.octetString && equalBytes(identifier.content, sid.subjectKeyIdentifier);
}

/** Checks that the certificate is for time-stamping and nothing else (RFC 3161, section 2.3). */
export function checkUsage(signer: Certificate): void {
  const extension = findExtension(signer, EXTENDED_KEY_USAGE_OID);
  const purposes = extension === undefined ? [] : keyPurposes(extension.extnValue);
  const refuse = (code: TimestampErrorCode, what: string) => {
    throw new TimestampError(code, `the signer's certificate ${what}`);
  };
  if (!purposes.includes(TIME_STAMPING_OID)) refuse('eku_missing', 'is not for time-stamping');
  if (purposes.length !== 1) refuse('eku_extra', 'is for more than time-stamping');
  if (extension?.critical !== true)
    refuse('eku_not_critical', 'does not mark its extended key usage critical');
  const usage = findExtension(signer, KEY_USAGE_OID);
  if (usage !== undefined && !allowsOnlySignatures(usage.extnValue))
    refuse('key_usage', 'is not for signatures only');
}

function keyPurposes(der: Uint8Array): string[] {
  const list = expectTag(parseDer(der, der.length), TAG.sequence, 'extended key usage');
  return list.children.map((purpose) => objectIdentifier(purpose, 'key purpose'));
}

/** digitalSignature (bit 0) or nonRepudiation (bit 1), or both, and no other bit. */
function allowsOnlySignatures(der: Uint8Array): boolean {
  const { content } = expectTag(parseDer(der, der.length), TAG.bitString, 'key usage');
  const bits = content[1] ?? 0;
  return content.length === 2 && (bits & 0xc0) !== 0 && (bits & 0x3f) === 0;
}
