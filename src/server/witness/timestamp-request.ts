/** The request for a time stamp (RFC 3161, section 2.4.1). */
import {
  derInteger,
  derObjectIdentifier,
  derOctetString,
  derSequence,
  derTrue,
} from '../../proof/asn1/der-write.js';
import { SHA256_OID } from '../../proof/rfc3161/algorithm.js';

/** `digest` is SHA-256, 32 bytes; `nonce` is an unsigned integer, big-endian; `certReq` asks for the signer's certificate. */
type TimestampRequest = {
  digest: Uint8Array;
  nonce: Uint8Array;
  certReq: boolean;
  policyOid?: string | undefined;
};

/** Encodes a TimeStampReq in DER. Throws RangeError if the digest's length or the policy OID is invalid. */
export function timestampRequest({ digest, nonce, certReq, policyOid }: TimestampRequest): Uint8Array {
  if (digest.length !== 32) throw new RangeError('a SHA-256 digest has 32 bytes');
  return derSequence(
    derInteger(1),
    // Parameters are NULL, as older authorities expect; RFC 5754, section 2, requires receivers to accept both forms.
    derSequence(
      derSequence(derObjectIdentifier(SHA256_OID), Uint8Array.of(0x05, 0x00)),
      derOctetString(digest),
    ),
    ...(policyOid === undefined ? [] : [derObjectIdentifier(policyOid)]),
    derInteger(nonce),
    ...(certReq ? [derTrue()] : []),
  );
}
