/** The signed attributes of a token: content type, message digest and signing certificate. */
import { contextTag, type DerNode, TAG } from '../asn1/der.js';
import { integerOctets, membersOf, objectIdentifier } from '../asn1/der-read.js';
import { equalBytes } from '../bytes/primitives.js';
import { algorithmOid, digest, type HashName, hashName, SHA256_OID } from './algorithm.js';
import type { Certificate } from './certificate.js';
import { TimestampError } from './error.js';
import { type Signer, type Token, TST_INFO_OID } from './token.js';

const CONTENT_TYPE_OID = '1.2.840.113549.1.9.3';
const MESSAGE_DIGEST_OID = '1.2.840.113549.1.9.4';
const SIGNING_CERTIFICATE_OID = '1.2.840.113549.1.9.16.2.12';
const SIGNING_CERTIFICATE_V2_OID = '1.2.840.113549.1.9.16.2.47';

/** Signed attributes by type; each has exactly one value here. */
type SignedAttributes = ReadonlyMap<string, DerNode>;

/** The signed attributes. Throws TimestampError `signed_attributes` when a type repeats or has not exactly one value. */
export function readSignedAttributes(signer: Signer): SignedAttributes {
  const attributes = new Map<string, DerNode>();
  for (const node of signer.signedAttributes.children) {
    const members = membersOf(node, 'Attribute');
    const oid = objectIdentifier(members.takeAny(), 'attribute type');
    const values = members.take(TAG.set).children;
    members.end();
    const [value] = values;
    if (value === undefined || values.length !== 1 || attributes.has(oid)) {
      throw new TimestampError(
        'signed_attributes',
        `signed attribute ${oid} must occur once, with one value`,
      );
    }
    attributes.set(oid, value);
  }
  return attributes;
}

/** Checks that the attributes are over this TSTInfo (RFC 5652, section 5.4): content type and message digest. */
export async function checkSignedContent(attributes: SignedAttributes, token: Token): Promise<void> {
  const contentType = attributes.get(CONTENT_TYPE_OID);
  const messageDigest = attributes.get(MESSAGE_DIGEST_OID);
  if (contentType === undefined || messageDigest === undefined) {
    throw new TimestampError('signed_attributes', 'content type and message digest must be signed');
  }
  if (objectIdentifier(contentType, 'content type') !== TST_INFO_OID) {
    throw new TimestampError('content_type', 'the signed content type is not TSTInfo');
  }
  const actual = await digest(hashName(token.signer.digestOid), token.tstInfoBytes);
  if (messageDigest.tag !== TAG.octetString || !equalBytes(messageDigest.content, actual)) {
    throw new TimestampError('message_digest', 'the signed digest is not that of the TSTInfo');
  }
}

/**
 * Checks that the signed attributes name this certificate (RFC 5035, section 5.4; the SHA-1 form of RFC 2634 too). Only
 * the first ESSCertID counts: it names the signer; the others could only restrict the chain, which the caller gives.
 */
export async function checkEssCertificate(attributes: SignedAttributes, signer: Certificate): Promise<void> {
  const v1 = attributes.get(SIGNING_CERTIFICATE_OID);
  const v2 = attributes.get(SIGNING_CERTIFICATE_V2_OID);
  if (v1 === undefined && v2 === undefined) {
    throw new TimestampError('ess_missing', "no signed attribute names the signer's certificate");
  }
  if (v1 !== undefined) await checkEssCertId(firstEssCertId(v1), 'SHA-1', signer);
  if (v2 === undefined) return;
  const certId = firstEssCertId(v2);
  const [algorithm] = certId.children;
  const isDefault = algorithm?.tag !== TAG.sequence;
  const hash = hashName(isDefault ? SHA256_OID : algorithmOid(algorithm, 'ESSCertIDv2'));
  await checkEssCertId({ ...certId, children: certId.children.slice(isDefault ? 0 : 1) }, hash, signer);
}

function firstEssCertId(value: DerNode): DerNode {
  const [first] = membersOf(value, 'SigningCertificate').take(TAG.sequence).children;
  if (first === undefined)
    throw new TimestampError('ess_missing', 'the signing certificate attribute is empty');
  return first;
}

/** `certId` from its hash on: certHash, then optionally issuerSerial. */
async function checkEssCertId(certId: DerNode, hash: HashName, signer: Certificate): Promise<void> {
  const members = membersOf(certId, 'ESSCertID');
  const certHash = members.take(TAG.octetString).content;
  const issuerSerial = members.takeIf(TAG.sequence);
  members.end();
  const matches = equalBytes(certHash, await digest(hash, signer.raw));
  if (!matches || (issuerSerial !== undefined && !isIssuerSerialOf(issuerSerial, signer))) {
    throw new TimestampError(
      'ess_mismatch',
      'the signed attributes name another certificate than the signer identifier',
    );
  }
}

function isIssuerSerialOf(node: DerNode, signer: Certificate): boolean {
  const members = membersOf(node, 'IssuerSerial');
  const names = members.take(TAG.sequence).children;
  const serial = integerOctets(members.takeAny(), 'serialNumber');
  const isIssuer = ({ tag, children }: DerNode) =>
    tag === contextTag(4, true) &&
    children[0] !== undefined &&
    equalBytes(children[0].raw, signer.issuer.raw);
  return equalBytes(serial, signer.serial) && names.some(isIssuer);
}
