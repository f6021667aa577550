/** Who a time stamp says it is by; nothing of it is proven. */
import { parseDer } from '../asn1/der.js';
import { FormatError } from '../bytes/format-error.js';
import { TimestampError } from './error.js';
import { nameText } from './name.js';
import { signerCandidates } from './signer.js';
import { parseResponse } from './token.js';

/**
 * The name of the signer's certificate where the stamp brings it along, else of the one that issued it. Never throws:
 * what cannot be read is "an authority".
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
