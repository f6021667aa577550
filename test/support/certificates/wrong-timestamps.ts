/** Responses that are wrong in one way each, with the code they are refused with; and unusual ones that are right. */
import { randomBytes } from 'node:crypto';
import { contextTag } from '../../../src/proof/asn1/der.js';
import {
  derElement,
  derInteger,
  derObjectIdentifier,
  derOctetString,
  derSequence,
  derTrue,
} from '../../../src/proof/asn1/der-write.js';
import { concatBytes, toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import type { TimestampErrorCode } from '../../../src/proof/rfc3161/error.js';
import {
  ATTRIBUTES,
  bits,
  derAttribute,
  derImprint,
  derIssuerSerial,
  derSid,
  essCertificate,
  extendedKeyUsage,
  type ForgedCa,
  type Forgery,
  forgeCa,
} from './timestamp-forge.js';

export type WrongTimestamp = [
  name: string,
  code: TimestampErrorCode | 'verified',
  forgery: Omit<Forgery, 'digest'>,
];

const TIME_STAMPING = '1.3.6.1.5.5.7.3.8';

/** Made for a stamp of `digest` by the leaf of `ca`. */
export function wrongTimestamps(ca: ForgedCa, digest: Uint8Array): WrongTimestamp[] {
  const stranger = forgeCa();
  const [leaf = new Uint8Array(), middle = new Uint8Array(), root = new Uint8Array()] = ca.chain;
  const without = (oid: string) => (usual: Uint8Array[]) =>
    usual.filter((attribute) => !toHex(attribute).includes(toHex(derObjectIdentifier(oid))));
  const replaced =
    (oid: string, ...values: Uint8Array[]) =>
    (usual: Uint8Array[]) => [...without(oid)(usual), derAttribute(oid, ...values)];
  const named = (value: Uint8Array) => replaced(ATTRIBUTES.signingCertificateV2, value);
  const repeated = extendedKeyUsage(true, TIME_STAMPING);
  const doubled = forgeCa({ leaf: { extensions: [repeated, repeated] } }).leaf;
  const { contentType, messageDigest, signingCertificate, signingCertificateV2 } = ATTRIBUTES;
  const criticalExtension = derSequence(derObjectIdentifier('1.2.3'), derTrue(), derOctetString());
  const plainExtension = derSequence(derObjectIdentifier('1.2.3'), derOctetString());
  const refused = (status: number) => derSequence(derInteger(status));
  return [
    ['nothing is wrong', 'verified', {}],
    ['granted with modifications', 'not_granted', { status: refused(1) }],
    ['rejected, with a token all the same', 'not_granted', { status: refused(2) }],
    ['waiting', 'not_granted', { status: refused(3) }],
    ['granted with a reason for failure', 'malformed', { status: derSequence(derInteger(0), bits(0, 0x80)) }],
    ['granted with an empty reason for failure', 'verified', { status: derSequence(derInteger(0), bits(0)) }],
    ['granted with no reason set', 'verified', { status: derSequence(derInteger(0), bits(6, 0, 0)) }],
    [
      'granted with a reason that is no bit string',
      'malformed',
      { status: derSequence(derInteger(0), bits()) },
    ],
    ['not signed data', 'content_type', { contentType: '1.2.840.113549.1.7.1' }],
    ['not a TSTInfo inside', 'content_type', { eContentType: '1.2.840.113549.1.7.1' }],
    ['no signer', 'signer_count', { signers: () => [] }],
    ['two signers', 'signer_count', { signers: (usual) => [usual, usual] }],
    [
      'imprint by SHA-1',
      'imprint_algorithm',
      { imprint: derImprint('1.3.14.3.2.26', digest.subarray(0, 20)) },
    ],
    [
      'imprint by SHA-512 of 32 bytes',
      'imprint_algorithm',
      { imprint: derImprint('2.16.840.1.101.3.4.2.3', digest) },
    ],
    [
      'imprint cut short',
      'imprint_length',
      { imprint: derImprint('2.16.840.1.101.3.4.2.1', digest.subarray(0, 31)) },
    ],
    [
      'imprint of something else',
      'imprint_mismatch',
      { imprint: derImprint('2.16.840.1.101.3.4.2.1', sha256(digest)) },
    ],
    ['another policy', 'policy_mismatch', { policyOid: '1.2.3.4' }],
    ['an unknown critical extension', 'critical_extension', { tstExtensions: criticalExtension }],
    ['an unknown extension', 'verified', { tstExtensions: plainExtension }],
    ['no signed attributes', 'signed_attributes', { withoutAttributes: true }],
    ['no content type', 'signed_attributes', { attributes: without(contentType) }],
    ['no message digest', 'signed_attributes', { attributes: without(messageDigest) }],
    [
      'an attribute twice',
      'signed_attributes',
      { attributes: (usual) => [...usual, ...without(contentType)(usual)] },
    ],
    [
      'an attribute of two values',
      'signed_attributes',
      { attributes: replaced(contentType, derTrue(), derTrue()) },
    ],
    ['an attribute of no value', 'signed_attributes', { attributes: replaced(contentType) }],
    [
      'another content type',
      'content_type',
      { attributes: replaced(contentType, derObjectIdentifier('1.2.3')) },
    ],
    [
      'another message digest',
      'message_digest',
      { attributes: replaced(messageDigest, derOctetString(digest)) },
    ],
    ['altered TSTInfo', 'message_digest', { alterTstInfo: (bytes) => withByte(bytes, -2, 0x31) }],
    [
      'altered signature',
      'signature',
      { signature: (bytes) => withByte(bytes, -1, (bytes.at(-1) ?? 0) ^ 1) },
    ],
    ['a signature that is no DER', 'signature', { signature: () => new Uint8Array(64) }],
    ['an empty signature', 'signature', { signature: () => new Uint8Array() }],
    [
      'a signature with a long scalar',
      'signature',
      { signature: () => derSequence(derInteger(randomBytes(40)), derInteger(1)) },
    ],
    [
      'a signature with bytes after it',
      'signature',
      { signature: (bytes) => concatBytes(bytes, Uint8Array.of(0)) },
    ],
    [
      'an RSA signature by an EC key',
      'signature',
      { signatureAlgorithm: derSequence(derObjectIdentifier('1.2.840.113549.1.1.11')) },
    ],
    [
      'ECDSA with SHA-1',
      'algorithm_unsupported',
      { signatureAlgorithm: derSequence(derObjectIdentifier('1.2.840.10045.4.1')) },
    ],
    ['no ESSCertID', 'ess_missing', { attributes: without(signingCertificateV2) }],
    ['an empty list of ESSCertIDs', 'ess_missing', { attributes: named(derSequence(derSequence())) }],
    [
      "ESSCertID of the signer's issuer",
      'ess_mismatch',
      { attributes: named(essCertificate(middle, 'sha256')) },
    ],
    [
      'ESSCertID with the right issuer and serial',
      'verified',
      { attributes: named(essCertificate(leaf, 'sha256', derIssuerSerial(leaf))) },
    ],
    [
      'ESSCertID with another serial',
      'ess_mismatch',
      { attributes: named(essCertificate(leaf, 'sha256', derIssuerSerial(stranger.leaf))) },
    ],
    [
      'SHA-1 ESSCertID alone',
      'verified',
      {
        attributes: (usual) => [
          ...without(signingCertificateV2)(usual),
          derAttribute(signingCertificate, essCertificate(leaf, 'sha1')),
        ],
      },
    ],
    [
      'SHA-1 ESSCertID of another, beside a right one',
      'ess_mismatch',
      { attributes: (usual) => [...usual, derAttribute(signingCertificate, essCertificate(middle, 'sha1'))] },
    ],
    [
      'signer identifier of another certificate',
      'ess_mismatch',
      { certificates: [leaf, middle], sid: derSid(middle) },
    ],
    ['signer identifier of none', 'signer_missing', { sid: derSid(stranger.leaf) }],
    ["the signer's certificate after another one", 'verified', { certificates: [middle, leaf] }],
    ['certificates without the signer', 'signer_missing', { certificates: [middle, root] }],
    ["a stranger's stamp", 'signer_untrusted', { certificates: [stranger.leaf], sid: derSid(stranger.leaf) }],
    [
      'something else than a certificate',
      'malformed',
      { certificates: [derElement(contextTag(2, true)), leaf] },
    ],
    ['a certificate that is none', 'malformed', { certificates: [derSequence(), leaf] }],
    ['an extension twice', 'malformed', { certificates: [doubled, leaf] }],
    ['no certificates', 'verified', { certificates: [] }],
    ['by subject key identifier', 'signer_missing', { sid: derElement(contextTag(0, false), digest) }],
    [
      'by right subject key identifier',
      'verified',
      { sid: derElement(contextTag(0, false), keyIdentifier(leaf)) },
    ],
    ['a genTime with offset', 'malformed', { genTime: derElement(0x18, utf8('20240301120000+0100')) }],
  ];
}

/** The same bytes with another one at `index`. */
export function withByte(bytes: Uint8Array, index: number, value: number): Uint8Array {
  return Uint8Array.from(bytes).with(index, value);
}

/** The subject key identifier that the forged certificate carries: 20 bytes after its OID. */
function keyIdentifier(certificate: Uint8Array): Uint8Array {
  const marker = Buffer.from('0603551d0e04160414', 'hex');
  const start = Buffer.from(certificate).indexOf(marker) + marker.length;
  return certificate.subarray(start, start + 20);
}
