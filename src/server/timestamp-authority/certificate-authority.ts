/** The disposable CA of the embedded time-stamping authority: a root and one certificate. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { contextTag, TAG } from '../../proof/asn1/der.js';
import {
  derBitString,
  derElement,
  derInteger,
  derObjectIdentifier,
  derOctetString,
  derSequence,
  derSetOf,
  derTrue,
  derUtf8String,
  derX509Time,
} from '../../proof/asn1/der-write.js';
import { toHex } from '../../proof/bytes/encoding.js';
import { sha256 } from '../../proof/bytes/primitives.js';

/** One extension; `value` is the DER inside the OCTET STRING. */
type CertificateExtension = { oid: string; critical: boolean; value: Uint8Array };

/** The fields of a certificate. Issuer and subject are DER Names; `publicKey` is any key with an exportable SPKI. */
export type CertificateContent = {
  serial: Uint8Array;
  issuer: Uint8Array;
  subject: Uint8Array;
  notBefore: Date;
  notAfter: Date;
  publicKey: KeyObject;
  extensions: readonly CertificateExtension[];
};

/** The signing key and its chain (DER, leaf first, root last). */
export type AuthorityKeys = { privateKey: KeyObject; chain: readonly [Uint8Array, Uint8Array] };

export type CaDeps = { clock: () => Date; randomBytes: (size: number) => Uint8Array };

/** The algorithm of every signature of the authority (RFC 5758, section 3.2), as an AlgorithmIdentifier in DER. */
export const ECDSA_WITH_SHA256 = derSequence(derObjectIdentifier('1.2.840.10045.4.3.2'));
const DAY_MS = 24 * 60 * 60 * 1000;
const VALIDITY_DAYS = 30 * 365;

/**
 * Creates a root and a time-stamping certificate (both ECDSA P-256, valid for 30 years from yesterday) and discards the
 * root's key, so that the root can issue nothing else.
 */
export function createAuthorityKeys({ clock, randomBytes }: CaDeps): AuthorityKeys {
  const root = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const signer = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const suffix = toHex(randomBytes(4));
  const issuer = derName(`Embedded time-stamping root ${suffix}`);
  const subject = derName(`Embedded time-stamping authority ${suffix}`);
  const now = clock().getTime();
  const validity = {
    notBefore: new Date(now - DAY_MS),
    notAfter: new Date(now + VALIDITY_DAYS * DAY_MS),
  };
  const rootCertificate = issueCertificate(root.privateKey, {
    ...validity,
    serial: randomSerial(randomBytes),
    issuer,
    subject: issuer,
    publicKey: root.publicKey,
    extensions: rootExtensions(root.publicKey),
  });
  const certificate = issueCertificate(root.privateKey, {
    ...validity,
    serial: randomSerial(randomBytes),
    issuer,
    subject,
    publicKey: signer.publicKey,
    extensions: signerExtensions(signer.publicKey, root.publicKey),
  });
  return { privateKey: signer.privateKey, chain: [certificate, rootCertificate] };
}

/** A certificate (DER, RFC 5280 version 3) signed with ECDSA and SHA-256 by an EC key. */
export function issueCertificate(issuerKey: KeyObject, content: CertificateContent): Uint8Array {
  const tbs = derSequence(
    derElement(contextTag(0, true), derInteger(2)),
    derInteger(content.serial),
    ECDSA_WITH_SHA256,
    content.issuer,
    derSequence(derX509Time(content.notBefore), derX509Time(content.notAfter)),
    content.subject,
    spkiOf(content.publicKey),
    derElement(contextTag(3, true), derSequence(...content.extensions.map(derExtension))),
  );
  return derSequence(tbs, ECDSA_WITH_SHA256, derBitString(sign('sha256', tbs, issuerKey)));
}

/** A Name of an organization and a common name. */
export function derName(commonName: string): Uint8Array {
  const attribute = (oid: string, text: string) =>
    derSetOf(derSequence(derObjectIdentifier(oid), derUtf8String(text)));
  return derSequence(attribute('2.5.4.10', 'Attestation service'), attribute('2.5.4.3', commonName));
}

/** Extensions of a root that may issue end certificates only. */
export function rootExtensions(key: KeyObject): CertificateExtension[] {
  return [
    { oid: '2.5.29.19', critical: true, value: derSequence(derTrue(), derInteger(0)) },
    keyUsage(0b0000_0110, 1),
    subjectKeyIdentifier(key),
  ];
}

/** Extensions of a certificate for time-stamping alone (RFC 3161, section 2.3). */
export function signerExtensions(key: KeyObject, issuerKey: KeyObject): CertificateExtension[] {
  const authorityKey = derElement(contextTag(0, false), keyIdentifier(issuerKey));
  return [
    { oid: '2.5.29.19', critical: true, value: derSequence() },
    keyUsage(0b1000_0000, 7),
    { oid: '2.5.29.37', critical: true, value: derSequence(derObjectIdentifier('1.3.6.1.5.5.7.3.8')) },
    subjectKeyIdentifier(key),
    { oid: '2.5.29.35', critical: false, value: derSequence(authorityKey) },
  ];
}

/** 127 random bits: positive and never zero for all that matters (RFC 5280 wants 20 bytes at most). */
export function randomSerial(randomBytes: CaDeps['randomBytes']): Uint8Array {
  const serial = Uint8Array.from(randomBytes(16));
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  return serial;
}

function keyUsage(bits: number, unusedBits: number): CertificateExtension {
  return { oid: '2.5.29.15', critical: true, value: derBitString(Uint8Array.of(bits), unusedBits) };
}

function subjectKeyIdentifier(key: KeyObject): CertificateExtension {
  return { oid: '2.5.29.14', critical: false, value: derOctetString(keyIdentifier(key)) };
}

/** The left 160 bits of the key's SHA-256: anything unique to the key will do (RFC 5280, section 4.2.1.2). */
function keyIdentifier(key: KeyObject): Uint8Array {
  return sha256(spkiOf(key)).subarray(0, 20);
}

function spkiOf(key: KeyObject): Uint8Array {
  return key.export({ type: 'spki', format: 'der' });
}

function derExtension({ oid, critical, value }: CertificateExtension): Uint8Array {
  return derSequence(
    derObjectIdentifier(oid),
    ...(critical ? [derTrue()] : []),
    derElement(TAG.octetString, value),
  );
}
