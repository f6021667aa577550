/** PEM (RFC 7468): DER in base64 between two lines with a label. */
import { fromBase64, toBase64 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';

type PemLabel = 'CERTIFICATE' | 'PUBLIC KEY';

const MAX_PEM_CHARACTERS = 64 * 1024;

/** PEM of DER bytes, in lines of 64 characters, with a newline at the end. */
export function toPem(label: PemLabel, der: Uint8Array): string {
  const lines = toBase64(der).match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}

/** The DER inside a PEM text of exactly one block with this label; white space around and inside it is free. Throws FormatError otherwise. */
export function fromPem(label: PemLabel, pem: string): Uint8Array {
  if (pem.length > MAX_PEM_CHARACTERS) throw new FormatError('PEM is longer than 64 KiB');
  const text = pem.trim();
  const [begin, end] = [`-----BEGIN ${label}-----`, `-----END ${label}-----`];
  if (!text.startsWith(begin) || !text.endsWith(end) || text.length < begin.length + end.length) {
    throw new FormatError(`not PEM of one ${label}`);
  }
  return fromBase64(text.slice(begin.length, -end.length).replaceAll(/\s/g, ''));
}
