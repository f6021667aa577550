/** Time-stamp responses that are wrong in one chosen way and right in all others, signed by a certificate authority of the test's own. */

import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { contextTag, TAG } from '../../../src/proof/asn1/der.js';
import {
  derElement,
  derGeneralizedTime,
  derInteger,
  derObjectIdentifier,
  derOctetString,
  derSequence,
  derSetOf,
  derTrue,
} from '../../../src/proof/asn1/der-write.js';
import { parseCertificate } from '../../../src/proof/rfc3161/certificate.js';
import { TimestampError, type TimestampErrorCode } from '../../../src/proof/rfc3161/error.js';
import { type TimestampExpectation, verifyTimestamp } from '../../../src/proof/rfc3161/verify-timestamp.js';
import {
  type CertificateContent,
  derName,
  issueCertificate,
  randomSerial,
  rootExtensions,
  signerExtensions,
} from '../../../src/server/timestamp-authority/certificate-authority.js';

const SHA256 = derSequence(derObjectIdentifier('2.16.840.1.101.3.4.2.1'));
const TST_INFO = '1.2.840.113549.1.9.16.1.4';
const SIGNED_DATA = '1.2.840.113549.1.7.2';
export const POLICY = '1.3.6.1.4.1.32473.7';
export const ATTRIBUTES = {
  contentType: '1.2.840.113549.1.9.3',
  messageDigest: '1.2.840.113549.1.9.4',
  signingCertificate: '1.2.840.113549.1.9.16.2.12',
  signingCertificateV2: '1.2.840.113549.1.9.16.2.47',
};

type Keys = { publicKey: KeyObject; privateKey: KeyObject };

/** A chain of three; each certificate may be changed before it is signed. */
export type ForgedCa = { chain: Uint8Array[]; signer: Keys; leaf: Uint8Array };

export type CaChanges = {
  leaf?: Partial<CertificateContent>;
  intermediate?: Partial<CertificateContent>;
  root?: Partial<CertificateContent>;
};

/** A day before `GEN_TIME` and the day after. */
export const GEN_TIME = new Date('2024-03-01T12:00:00.000Z');
export const VALIDITY = {
  notBefore: new Date('2024-02-29T12:00:00Z'),
  notAfter: new Date('2024-03-02T12:00:00Z'),
};

const keys = (): Keys => generateKeyPairSync('ec', { namedCurve: 'P-256' });

export function forgeCa(changes: CaChanges = {}): ForgedCa {
  const [root, intermediate, signer] = [keys(), keys(), keys()];
  const [rootName, intermediateName, name] = [derName('Root'), derName('Intermediate'), derName('Stamps')];
  const common = { ...VALIDITY, serial: randomSerial(randomBytes) };
  const rootCertificate = issueCertificate(root.privateKey, {
    ...common,
    issuer: rootName,
    subject: rootName,
    publicKey: root.publicKey,
    extensions: caExtensions(root.publicKey),
    ...changes.root,
  });
  const middle = issueCertificate(root.privateKey, {
    ...common,
    issuer: rootName,
    subject: intermediateName,
    publicKey: intermediate.publicKey,
    extensions: rootExtensions(intermediate.publicKey),
    ...changes.intermediate,
  });
  const leaf = issueCertificate(intermediate.privateKey, {
    ...common,
    issuer: intermediateName,
    subject: name,
    publicKey: signer.publicKey,
    extensions: signerExtensions(signer.publicKey, intermediate.publicKey),
    ...changes.leaf,
  });
  return { chain: [leaf, middle, rootCertificate], signer, leaf };
}

/** Extensions of an authority that may have any number of authorities below it. */
export function caExtensions(key: KeyObject) {
  const [, usage, identifier] = rootExtensions(key);
  if (usage === undefined || identifier === undefined) throw new Error('a root has three extensions');
  return [{ oid: '2.5.29.19', critical: true, value: derSequence(derTrue()) }, usage, identifier];
}

/** An extended key usage extension. */
export function extendedKeyUsage(critical: boolean, ...purposes: string[]) {
  return { oid: '2.5.29.37', critical, value: derSequence(...purposes.map(derObjectIdentifier)) };
}

/** The extensions of a time-stamping certificate, one of them replaced, or left out. */
export function leafExtensions(oid: string, replacement?: CertificateContent['extensions'][number]) {
  const { publicKey } = keys();
  const rest = signerExtensions(publicKey, publicKey).filter(
    (extension) => !['2.5.29.35', oid].includes(extension.oid),
  );
  return replacement ? [...rest, replacement] : rest;
}

/** What of a response to change; everything else is right for `digest`. */
export type Forgery = {
  digest: Uint8Array;
  imprint?: Uint8Array;
  /** An INTEGER, DER. */
  serial?: Uint8Array;
  policyOid?: string;
  /** Of an unsigned number. */
  nonce?: Uint8Array;
  /** An INTEGER, DER, in place of `nonce`. */
  nonceInteger?: Uint8Array;
  genTime?: Uint8Array;
  accuracy?: Uint8Array;
  tstExtensions?: Uint8Array;
  /** Replaces the TSTInfo after it was signed. */
  alterTstInfo?: (tstInfo: Uint8Array) => Uint8Array;
  contentType?: string;
  eContentType?: string;
  /** Changes the signed attributes before they are signed. */
  attributes?: (usual: Uint8Array[]) => Uint8Array[];
  withoutAttributes?: boolean;
  sid?: Uint8Array;
  signatureAlgorithm?: Uint8Array;
  signature?: (usual: Uint8Array) => Uint8Array;
  certificates?: Uint8Array[];
  signers?: (usual: Uint8Array) => Uint8Array[];
  status?: Uint8Array;
};

export function forgeResponse(ca: ForgedCa, forgery: Forgery): Uint8Array {
  const tstInfo = forgeTstInfo(forgery);
  const certificates = forgery.certificates ?? [ca.leaf];
  const signerInfo = forgeSignerInfo(ca, forgery, tstInfo);
  const signedData = derSequence(
    derInteger(3),
    derSetOf(SHA256),
    derSequence(
      derObjectIdentifier(forgery.eContentType ?? TST_INFO),
      derElement(contextTag(0, true), derOctetString(forgery.alterTstInfo?.(tstInfo) ?? tstInfo)),
    ),
    ...(certificates.length > 0 ? [derElement(contextTag(0, true), ...certificates)] : []),
    derSetOf(...(forgery.signers?.(signerInfo) ?? [signerInfo])),
  );
  return derSequence(
    forgery.status ?? derSequence(derInteger(0)),
    derSequence(
      derObjectIdentifier(forgery.contentType ?? SIGNED_DATA),
      derElement(contextTag(0, true), signedData),
    ),
  );
}

export function derImprint(algorithm: string, digest: Uint8Array): Uint8Array {
  return derSequence(derSequence(derObjectIdentifier(algorithm)), derOctetString(digest));
}

export function derAttribute(oid: string, ...values: Uint8Array[]): Uint8Array {
  return derSequence(derObjectIdentifier(oid), derSetOf(...values));
}

/** SigningCertificateV2 (hash algorithm left out) or, with `sha1`, SigningCertificate. */
export function essCertificate(
  certificate: Uint8Array,
  hash: 'sha1' | 'sha256',
  issuerSerial?: Uint8Array,
): Uint8Array {
  const certHash = derOctetString(createHash(hash).update(certificate).digest());
  return derSequence(derSequence(derSequence(certHash, ...(issuerSerial ? [issuerSerial] : []))));
}

/** IssuerSerial of a certificate. */
export function derIssuerSerial(certificate: Uint8Array): Uint8Array {
  const { issuer, serial } = parseCertificate(certificate);
  return derSequence(derSequence(derElement(contextTag(4, true), issuer.raw)), derInteger(serial));
}

/** A SignerIdentifier of a certificate, by issuer and serial number. */
export function derSid(certificate: Uint8Array): Uint8Array {
  const { issuer, serial } = parseCertificate(certificate);
  return derSequence(issuer.raw, derInteger(serial));
}

/** A bit string from its content octets, the number of unused bits first. */
export function bits(...octets: number[]): Uint8Array {
  return derElement(TAG.bitString, Uint8Array.from(octets));
}

function forgeTstInfo(forgery: Forgery): Uint8Array {
  return derSequence(
    derInteger(1),
    derObjectIdentifier(forgery.policyOid ?? POLICY),
    forgery.imprint ?? derImprint('2.16.840.1.101.3.4.2.1', forgery.digest),
    forgery.serial ?? derInteger(Uint8Array.of(1, 2, 3)),
    forgery.genTime ?? derGeneralizedTime(GEN_TIME),
    ...(forgery.accuracy ? [forgery.accuracy] : []),
    ...(forgery.nonceInteger ? [forgery.nonceInteger] : []),
    ...(forgery.nonce ? [derInteger(forgery.nonce)] : []),
    ...(forgery.tstExtensions ? [derElement(contextTag(1, true), forgery.tstExtensions)] : []),
  );
}

function forgeSignerInfo(ca: ForgedCa, forgery: Forgery, tstInfo: Uint8Array): Uint8Array {
  const usual = [
    derAttribute(ATTRIBUTES.contentType, derObjectIdentifier(TST_INFO)),
    derAttribute(ATTRIBUTES.messageDigest, derOctetString(createHash('sha256').update(tstInfo).digest())),
    derAttribute(ATTRIBUTES.signingCertificateV2, essCertificate(ca.leaf, 'sha256')),
  ];
  const attributes = derSetOf(...(forgery.attributes?.(usual) ?? usual));
  const signature = sign('sha256', attributes, ca.signer.privateKey);
  const tagged = Uint8Array.from(attributes);
  tagged[0] = contextTag(0, true);
  const sid = forgery.sid ?? derSid(ca.leaf);
  return derSequence(
    derInteger(sid[0] === TAG.sequence ? 1 : 3),
    sid,
    SHA256,
    ...(forgery.withoutAttributes ? [] : [tagged]),
    forgery.signatureAlgorithm ?? derSequence(derObjectIdentifier('1.2.840.10045.4.3.2')),
    derOctetString(forgery.signature?.(signature) ?? signature),
  );
}

/** The code of the error that `verifyTimestamp` throws, or that it throws none. */
export async function codeOf(expectation: TimestampExpectation): Promise<TimestampErrorCode | 'verified'> {
  try {
    await verifyTimestamp(expectation);
    return 'verified';
  } catch (error) {
    if (error instanceof TimestampError) return error.code;
    throw error;
  }
}
