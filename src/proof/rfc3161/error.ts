/**
 * Which check a time stamp failed, one code each:
 * - `too_large`, `malformed`: not a DER TimeStampResp of at most 64 KiB
 * - `not_granted`: the authority refused, or granted something else than asked
 * - `content_type`: not CMS signed data over a TSTInfo, or the signed attribute says another type
 * - `signer_count`: not exactly one signer
 * - `imprint_algorithm`, `imprint_length`, `imprint_mismatch`: not a stamp of the expected SHA-256 digest
 * - `nonce_missing`, `nonce_mismatch`, `policy_mismatch`: not the answer to this request
 * - `critical_extension`: the TSTInfo holds a critical extension, and none is supported
 * - `signed_attributes`: a signed attribute is missing, repeated or not single-valued
 * - `message_digest`: the TSTInfo does not match the signed digest
 * - `signer_missing`: the token brings certificates, but not the one its signer identifier names
 * - `signer_untrusted`: the signer is not the leaf of a trusted chain
 * - `signer_mismatch`: the signer has issuer and serial number of a trusted chain's leaf, but another certificate
 * - `chain_order`: a trusted chain is not in order, leaf first, each issued by the next
 * - `ess_missing`, `ess_mismatch`: no ESSCertID(v2), or one of another certificate
 * - `eku_missing`, `eku_not_critical`, `eku_extra`: extended key usage is not the critical, sole id-kp-timeStamping
 * - `key_usage`: the signer's key usage does not allow signatures, or allows more
 * - `algorithm_unsupported`: not RSA PKCS #1 v1.5 or ECDSA (P-256, P-384, P-521) with SHA-256, SHA-384 or SHA-512
 * - `signature`: the signature is not by the signer's key
 * - `chain_expired`: a certificate of the chain was not valid at genTime
 * - `chain_invalid`: the chain does not lead to its root for another reason
 */
export type TimestampErrorCode =
  | 'too_large'
  | 'malformed'
  | 'not_granted'
  | 'content_type'
  | 'signer_count'
  | 'imprint_algorithm'
  | 'imprint_length'
  | 'imprint_mismatch'
  | 'nonce_missing'
  | 'nonce_mismatch'
  | 'policy_mismatch'
  | 'critical_extension'
  | 'signed_attributes'
  | 'message_digest'
  | 'signer_missing'
  | 'signer_untrusted'
  | 'signer_mismatch'
  | 'chain_order'
  | 'ess_missing'
  | 'ess_mismatch'
  | 'eku_missing'
  | 'eku_not_critical'
  | 'eku_extra'
  | 'key_usage'
  | 'algorithm_unsupported'
  | 'signature'
  | 'chain_expired'
  | 'chain_invalid';

/** A time stamp that does not verify. The message is one short sentence and quotes nothing secret. */
export class TimestampError extends Error {
  override readonly name = 'TimestampError';

  constructor(
    readonly code: TimestampErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
