/** The unverified name of a time stamp's signer. */
import { parseDer } from '../asn1/der.js';
import { FormatError } from '../bytes/format-error.js';
import { TimestampError } from './error.js';
import { nameText } from './name.js';
import { signerCandidates } from './signer.js';
import { parseResponse } from './token.js';

/**
 * Returns the subject of the signer's certificate if the token carries it, else its issuer. Returns "an authority" if
 * neither can be parsed; never throws.
 */
export function signerName(response: Uint8Array): string {
  try {
    const token = parseResponse(response);
    const { sid } = token.signer;
    if (token.certificates.length > 0) {
      const [certificate] = signerCandidates(token, []);
      if (certificate !== undefined) return nameText(certificate.subject);
    }
    if (!('issuer' in sid)) return 'an authority';
    return `an authority under ${nameText(parseDer(sid.issuer, sid.issuer.length))}`;
  } catch (error) {
    if (error instanceof FormatError || error instanceof TimestampError) return 'an authority';
    throw error;
  }
}
