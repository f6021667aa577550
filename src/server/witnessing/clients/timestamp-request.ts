/** The request for a time stamp (RFC 3161, section 2.4.1). */
import {
  derInteger,
  derObjectIdentifier,
  derOctetString,
  derSequence,
  derTrue,
} from '../../../proof/asn1/der-write.js';
import { type HashName, hashOidOf } from '../../../proof/rfc3161/algorithm.js';

/**
 * `digest` is of the algorithm `hash`, SHA-256 if omitted; `nonce` is an unsigned integer, big-endian; `certReq` asks for
 * the signer's certificate.
 */
type TimestampRequest = {
  digest: Uint8Array;
  hash?: HashName | undefined;
  nonce: Uint8Array;
  certReq: boolean;
  policyOid?: string | undefined;
};

/** Encodes a TimeStampReq in DER. Throws RangeError if the digest's length or the policy OID is invalid. */
export function timestampRequest(wanted: TimestampRequest): Uint8Array {
  const { digest, hash = 'SHA-256', nonce, certReq, policyOid } = wanted;
  if (digest.length * 8 !== Number(hash.slice('SHA-'.length))) {
    throw new RangeError(`a digest of ${digest.length} bytes is not a ${hash} digest`);
  }
  return derSequence(
    derInteger(1),
    // Parameters are NULL, as older authorities expect; RFC 5754, section 2, requires receivers to accept both forms.
    derSequence(
      derSequence(derObjectIdentifier(hashOidOf(hash)), Uint8Array.of(0x05, 0x00)),
      derOctetString(digest),
    ),
    ...(policyOid === undefined ? [] : [derObjectIdentifier(policyOid)]),
    derInteger(nonce),
    ...(certReq ? [derTrue()] : []),
  );
}
