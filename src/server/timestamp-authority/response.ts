/** Answers of a time-stamping authority (RFC 3161, section 2.4.2; RFC 5652, section 5; RFC 5035). */
import { type KeyObject, sign } from 'node:crypto';
import { contextTag } from '../../proof/asn1/der.js';
import {
  derBitString,
  derElement,
  derGeneralizedTime,
  derInteger,
  derObjectIdentifier,
  derOctetString,
  derSequence,
  derSetOf,
  derUtf8String,
  derX509Time,
} from '../../proof/asn1/der-write.js';
import { sha256 } from '../../proof/bytes/primitives.js';
import { SHA256_OID } from '../../proof/rfc3161/algorithm.js';
import { parseCertificate } from '../../proof/rfc3161/certificate.js';
import { TST_INFO_OID } from '../../proof/rfc3161/token.js';
import { ECDSA_WITH_SHA256 } from './certificate-authority.js';
import type { FailureBit, TimestampQuery } from './request.js';

/** Who signs: an EC key and the DER of its certificate. */
export type TimestampSigner = { privateKey: KeyObject; certificate: Uint8Array; policyOid: string };

const SHA256 = derSequence(derObjectIdentifier(SHA256_OID));
const SIGNED_DATA = derObjectIdentifier('1.2.840.113549.1.7.2');
const TST_INFO = derObjectIdentifier(TST_INFO_OID);

const ACCURACY_SECONDS = 1;

const GRANTED = 0;
const REJECTION = 2;

const FAILURE_BITS: Readonly<Record<FailureBit, number>> = {
  badAlg: 0,
  badRequest: 2,
  badDataFormat: 5,
  unacceptedPolicy: 15,
  unacceptedExtension: 16,
};

/**
 * A granted TimeStampResp (DER): genTime in whole seconds and an accuracy of one, as what the clock says beyond them is
 * cut off; ordering false, the certificate inside if it was asked for.
 */
export function grantTimestamp(
  signer: TimestampSigner,
  query: TimestampQuery,
  stamp: { genTime: Date; serial: Uint8Array },
): Uint8Array {
  const tstInfo = derSequence(
    derInteger(1),
    derObjectIdentifier(signer.policyOid),
    query.imprint,
    derInteger(stamp.serial),
    derGeneralizedTime(stamp.genTime),
    derSequence(derInteger(ACCURACY_SECONDS)),
    ...(query.nonce === undefined ? [] : [query.nonce]),
  );
  const signedData = derSequence(
    derInteger(3),
    derSetOf(SHA256),
    derSequence(TST_INFO, derElement(contextTag(0, true), derOctetString(tstInfo))),
    ...(query.wantsCertificate ? [derElement(contextTag(0, true), signer.certificate)] : []),
    derSetOf(signerInfo(signer, tstInfo, stamp.genTime)),
  );
  return derSequence(
    derSequence(derInteger(GRANTED)),
    derSequence(SIGNED_DATA, derElement(contextTag(0, true), signedData)),
  );
}

/** A TimeStampResp (DER) that says why there is no stamp. */
export function rejectTimestamp(failure: FailureBit, reason: string): Uint8Array {
  const bit = FAILURE_BITS[failure];
  const bits = new Uint8Array((bit >> 3) + 1);
  bits[bit >> 3] = 0x80 >> (bit & 7);
  // A list of named bits ends with the last one set (X.690, section 11.2.2).
  const failInfo = derBitString(bits, 7 - (bit & 7));
  return derSequence(derSequence(derInteger(REJECTION), derSequence(derUtf8String(reason)), failInfo));
}

function signerInfo(signer: TimestampSigner, tstInfo: Uint8Array, signingTime: Date): Uint8Array {
  const { issuer, serial } = parseCertificate(signer.certificate);
  const attributes = derSetOf(
    attribute('1.2.840.113549.1.9.3', TST_INFO),
    attribute('1.2.840.113549.1.9.4', derOctetString(sha256(tstInfo))),
    attribute('1.2.840.113549.1.9.5', derX509Time(signingTime)),
    attribute('1.2.840.113549.1.9.16.2.47', signingCertificateV2(signer.certificate)),
  );
  return derSequence(
    derInteger(1),
    derSequence(issuer.raw, derInteger(serial)),
    SHA256,
    asContext0(attributes),
    ECDSA_WITH_SHA256,
    derOctetString(sign('sha256', attributes, signer.privateKey)),
  );
}

function attribute(oid: string, value: Uint8Array): Uint8Array {
  return derSequence(derObjectIdentifier(oid), derSetOf(value));
}

/** One ESSCertIDv2 of the default hash algorithm, SHA-256, which is therefore left out. */
function signingCertificateV2(certificate: Uint8Array): Uint8Array {
  return derSequence(derSequence(derSequence(derOctetString(sha256(certificate)))));
}

/** In the message the SET OF that was signed has tag [0] (RFC 5652, section 5.4). */
function asContext0(set: Uint8Array): Uint8Array {
  const tagged = Uint8Array.from(set);
  tagged[0] = contextTag(0, true);
  return tagged;
}
