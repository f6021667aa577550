/** Signatures of certificates (RFC 5280, section 4.1.1.2). */
import { contextTag, type DerNode, TAG } from '../asn1/der.js';
import {
  membersOf,
  objectIdentifier,
  onlyMember,
  unsignedInteger,
  wholeBitString,
} from '../asn1/der-read.js';
import { FormatError } from '../bytes/format-error.js';
import { equalBytes } from '../bytes/primitives.js';
import {
  algorithmOid,
  type HashName,
  hashName,
  RSA_PSS_OID,
  SIGNATURES,
  type SignatureScheme,
  verifyByScheme,
} from './algorithm.js';
import type { Certificate } from './certificate.js';

const SHA1_OID = '1.3.14.3.2.26';
const MGF1_OID = '1.2.840.113549.1.1.8';

/** SHA-1 counts between certificates only: the caller trusts each of them byte for byte, so no collision gets in. */
const SHA1_SIGNATURES: ReadonlyMap<string, SignatureScheme> = new Map([
  ['1.2.840.113549.1.1.5', { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-1' }],
  ['1.2.840.10045.4.1', { name: 'ECDSA', hash: 'SHA-1' }],
]);

/**
 * Whether `certificate` is signed by the key of `issuer`. Throws FormatError when the algorithm inside the signed part
 * is not the one outside or the signature is no string of octets, and TimestampError `algorithm_unsupported`.
 */
export async function isSignedBy(certificate: Certificate, issuer: Certificate): Promise<boolean> {
  const { innerAlgorithm, outerAlgorithm, tbs } = certificate;
  if (!equalBytes(innerAlgorithm.raw, outerAlgorithm.raw)) {
    throw new FormatError('the signature algorithm inside a certificate differs from the one outside');
  }
  const signature = wholeBitString(certificate.signature, 'signatureValue');
  return verifyByScheme(issuer.spki, signatureScheme(outerAlgorithm), tbs, signature);
}

function signatureScheme(algorithm: DerNode): SignatureScheme {
  const members = membersOf(algorithm, 'signatureAlgorithm');
  if (objectIdentifier(members.takeAny(), 'signatureAlgorithm') === RSA_PSS_OID) {
    return pssScheme(members.take(TAG.sequence));
  }
  const oid = algorithmOid(algorithm, 'signatureAlgorithm');
  const scheme = SIGNATURES.get(oid) ?? SHA1_SIGNATURES.get(oid);
  if (scheme === undefined) throw new FormatError(`signature algorithm ${oid} is not supported`);
  return scheme;
}

/** RSASSA-PSS-params (RFC 4055, section 3.1) with MGF1 of the same hash, the only mask function of Web Crypto. */
function pssScheme(node: DerNode): SignatureScheme {
  const members = membersOf(node, 'RSASSA-PSS-params');
  const hashAlgorithm = members.takeIf(contextTag(0, true));
  const mask = members.takeIf(contextTag(1, true));
  const salt = members.takeIf(contextTag(2, true));
  const trailer = members.takeIf(contextTag(3, true));
  members.end();
  const hash = pssHash(hashAlgorithm);
  if (maskHash(mask) !== hash) throw new FormatError('the mask of RSA-PSS is not by MGF1 of the same hash');
  if (trailer !== undefined) throw new FormatError('RSA-PSS with a trailer field is not supported');
  return { name: 'RSA-PSS', hash, saltLength: saltLength(salt) };
}

function pssHash(wrapper: DerNode | undefined): HashName {
  if (wrapper === undefined) return 'SHA-1';
  const oid = algorithmOid(onlyMember(wrapper, 'hashAlgorithm', TAG.sequence), 'hashAlgorithm');
  return oid === SHA1_OID ? 'SHA-1' : hashName(oid);
}

function maskHash(wrapper: DerNode | undefined): HashName {
  if (wrapper === undefined) return 'SHA-1';
  const members = membersOf(onlyMember(wrapper, 'maskGenAlgorithm', TAG.sequence), 'maskGenAlgorithm');
  const oid = objectIdentifier(members.takeAny(), 'maskGenAlgorithm');
  if (oid !== MGF1_OID) throw new FormatError(`mask generation function ${oid} is not supported`);
  const hash = algorithmOid(members.take(TAG.sequence), 'hashAlgorithm');
  members.end();
  return hash === SHA1_OID ? 'SHA-1' : hashName(hash);
}

function saltLength(wrapper: DerNode | undefined): number {
  if (wrapper === undefined) return 20;
  const octets = unsignedInteger(onlyMember(wrapper, 'saltLength', TAG.integer), 'saltLength');
  if (octets.length > 2) throw new FormatError('the salt of RSA-PSS is too long');
  return octets.reduce((value, octet) => value * 256 + octet, 0);
}
