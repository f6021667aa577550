/** Key identifiers of certificates (RFC 5280, sections 4.2.1.1 and 4.2.1.2). */
import { contextTag, type DerNode, TAG } from '../asn1/der.js';
import { expectTag, integerOctets, membersOf, onlyMember } from '../asn1/der-read.js';
import { equalBytes } from '../bytes/primitives.js';
import { type Certificate, extensionValue } from './certificate.js';
import { sameName } from './name.js';

const SUBJECT_KEY_IDENTIFIER_OID = '2.5.29.14';
const AUTHORITY_KEY_IDENTIFIER_OID = '2.5.29.35';
const SERIAL_TAG = contextTag(2, false);
const DIRECTORY_NAME_TAG = contextTag(4, true);

/**
 * Whether a certificate's AuthorityKeyIdentifier matches `issuer`, by the rules of openssl's `X509_check_akid`: members
 * that are absent match anything; the key identifier is compared only if the issuer has one; of authorityCertIssuer the
 * first directory name is compared. Throws FormatError.
 */
export function matchesIssuer(certificate: Certificate, issuer: Certificate): boolean {
  const value = extensionValue(certificate, AUTHORITY_KEY_IDENTIFIER_OID);
  if (value === undefined) return true;
  const members = membersOf(value, 'AuthorityKeyIdentifier');
  const key = members.takeIf(contextTag(0, false));
  const names = members.takeIf(contextTag(1, true));
  const serial = members.takeIf(SERIAL_TAG);
  members.end();
  return matchesKey(key, issuer) && matchesSerial(serial, issuer) && matchesName(names, issuer);
}

function matchesKey(key: DerNode | undefined, issuer: Certificate): boolean {
  const own = extensionValue(issuer, SUBJECT_KEY_IDENTIFIER_OID);
  if (own === undefined) return true;
  const identifier = expectTag(own, TAG.octetString, 'SubjectKeyIdentifier').content;
  return key === undefined || equalBytes(key.content, identifier);
}

function matchesSerial(serial: DerNode | undefined, issuer: Certificate): boolean {
  if (serial === undefined) return true;
  return equalBytes(integerOctets(serial, 'authorityCertSerialNumber', SERIAL_TAG), issuer.serial);
}

function matchesName(names: DerNode | undefined, issuer: Certificate): boolean {
  const directory = names?.children.find(({ tag }) => tag === DIRECTORY_NAME_TAG);
  if (directory === undefined) return true;
  return sameName(onlyMember(directory, 'authorityCertIssuer', TAG.sequence), issuer.issuer);
}
