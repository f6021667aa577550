/** Attestations: the leaves of OpenTimestamps proofs, which name the notary of a message. */
import { compareBytes, concatBytes, fromHex, fromUtf8, toHex, utf8 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { type ByteReader, encodeVarbytes, encodeVaruint, readBytes } from './byte-reader.js';

/**
 * - `bitcoin`: the message is the Merkle root of the block at `height`.
 * - `pending`: the calendar at `uri` has promised to commit to the message. It proves nothing.
 * - `unknown`: any other kind, kept as it is. `tag` is 16 hex digits.
 */
export type Attestation =
  | { readonly kind: 'bitcoin'; readonly height: number }
  | { readonly kind: 'pending'; readonly uri: string }
  | { readonly kind: 'unknown'; readonly tag: string; readonly payload: Uint8Array };

const BITCOIN_TAG = '0588960d73d71901';
const PENDING_TAG = '83dfe30d2ef90c8e';
const TAG_BYTES = 8;
const MAX_PAYLOAD_BYTES = 8_192;
const MAX_URI_BYTES = 1_000;

/** Reads an attestation: tag, payload length, payload. Throws FormatError. */
export function readAttestation(reader: ByteReader): Attestation {
  const tag = toHex(reader.bytes(TAG_BYTES));
  const payload = reader.varbytes(MAX_PAYLOAD_BYTES);
  switch (tag) {
    case BITCOIN_TAG:
      return { kind: 'bitcoin', height: readBytes(payload, (inner) => inner.varuint()) };
    case PENDING_TAG:
      return { kind: 'pending', uri: readUri(readBytes(payload, (inner) => inner.varbytes(MAX_URI_BYTES))) };
    default:
      return { kind: 'unknown', tag, payload };
  }
}

/** Serialises an attestation. */
export function encodeAttestation(attestation: Attestation): Uint8Array {
  return concatBytes(fromHex(tagOf(attestation)), encodeVarbytes(payloadOf(attestation)));
}

/** The canonical order: by tag, then by height, URI or payload. */
export function compareAttestations(a: Attestation, b: Attestation): number {
  if (a.kind === 'bitcoin' && b.kind === 'bitcoin') return a.height - b.height;
  if (a.kind === 'pending' && b.kind === 'pending') return compareBytes(utf8(a.uri), utf8(b.uri));
  const byTag = compareBytes(fromHex(tagOf(a)), fromHex(tagOf(b)));
  return byTag || compareBytes(payloadOf(a), payloadOf(b));
}

function readUri(bytes: Uint8Array): string {
  const uri = fromUtf8(bytes);
  // The format excludes queries, fragments, percent-encoding, user names and IPv6 addresses.
  if (!/^[A-Za-z0-9\-._/:]*$/.test(uri)) throw new FormatError('a calendar’s URI has an invalid character');
  return uri;
}

function tagOf(attestation: Attestation): string {
  switch (attestation.kind) {
    case 'bitcoin':
      return BITCOIN_TAG;
    case 'pending':
      return PENDING_TAG;
    case 'unknown':
      return attestation.tag;
  }
}

function payloadOf(attestation: Attestation): Uint8Array {
  switch (attestation.kind) {
    case 'bitcoin':
      return encodeVaruint(attestation.height);
    case 'pending':
      return encodeVarbytes(utf8(attestation.uri));
    case 'unknown':
      return attestation.payload;
  }
}
