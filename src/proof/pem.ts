import { fromBase64 } from './encoding.js';
import { FormatError } from './format-error.js';

const MAX_PEM_CHARACTERS = 64 * 1024;

/** The DER inside a PEM text that holds exactly one block with this label, `CERTIFICATE` say (RFC 7468). Throws FormatError otherwise. */
export function pemToDer(pem: string, label: 'CERTIFICATE' | 'PUBLIC KEY'): Uint8Array {
  if (pem.length > MAX_PEM_CHARACTERS) throw new FormatError('PEM is longer than 64 KiB');
  const match = /^\s*-----BEGIN ([A-Z ]+)-----\s([A-Za-z0-9+/=\s]+)-----END ([A-Z ]+)-----\s*$/.exec(pem);
  if (!match || match[1] !== label || match[3] !== label) throw new FormatError(`not PEM of one ${label}`);
  return fromBase64((match[2] ?? '').replaceAll(/\s/g, ''));
}
