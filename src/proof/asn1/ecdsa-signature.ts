import { FormatError } from '../bytes/format-error.js';
import { parseDer } from './der.js';
import { membersOf, unsignedInteger } from './der-read.js';

/**
 * An ECDSA-Sig-Value (RFC 3279, section 2.2.3) in the form of Web Crypto: r and s, concatenated, of fixed length.
 * Undefined if it is malformed, or of a curve with another scalar length.
 */
export function findRawEcdsa(der: Uint8Array, scalarBytes: number): Uint8Array | undefined {
  const raw = new Uint8Array(2 * scalarBytes);
  try {
    const members = membersOf(parseDer(der, 256), 'ECDSA-Sig-Value');
    for (const end of [scalarBytes, 2 * scalarBytes]) {
      const scalar = unsignedInteger(members.takeAny(), 'ECDSA-Sig-Value');
      if (scalar.length > scalarBytes) return undefined;
      raw.set(scalar, end - scalar.length);
    }
    members.end();
    return raw;
  } catch (error) {
    if (error instanceof FormatError) return undefined;
    throw error;
  }
}
