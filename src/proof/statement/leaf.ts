/**
 * The leaf record of a submission: a Rekor v2 `hashedrekord` 0.0.2 entry about its DSSE envelope. It holds a hash, a
 * signature and a public key, so the log can be public without revealing the attested content.
 */

import { fromBase64, fromUtf8, toBase64, utf8 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { sha256 } from '../bytes/primitives.js';
import { HASH_BYTES, leafHash } from '../log/merkle.js';
import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from './dsse.js';

/** The log entry's kind and version, as a Sigstore bundle names them. */
export const LEAF_KIND = 'hashedrekord';
export const LEAF_VERSION = '0.0.2';

/** The parts of a leaf record: SHA-256 of the signed bytes (PAE), the signature (DER), the public key (P-256 SPKI, DER). */
interface LeafFields {
  readonly digest: Uint8Array;
  readonly signature: Uint8Array;
  readonly publicKey: Uint8Array;
}

/** The leaf record's bytes: its JCS. */
export function leafRecord({ digest, signature, publicKey }: LeafFields): Uint8Array {
  return utf8(leafRecordText(toBase64(digest), toBase64(signature), toBase64(publicKey)));
}

/** The same as text, of fields in base64; written out directly because this runs for every submission. Base64 needs no escapes. */
export function leafRecordText(digest: string, signature: string, publicKey: string): string {
  return (
    `{"apiVersion":"${LEAF_VERSION}","kind":"${LEAF_KIND}","spec":{"hashedRekordV002":{` +
    `"data":{"algorithm":"SHA2_256","digest":"${digest}"},` +
    `"signature":{"content":"${signature}","verifier":{` +
    `"keyDetails":"PKIX_ECDSA_P256_SHA_256","publicKey":{"rawBytes":"${publicKey}"}}}}}}`
  );
}

/** Any base64 in a record's text. The record is canonical if the text is, because base64 is canonical. */
const BASE64 = '([A-Za-z0-9+/=]*)';

/** Matches the results of {@link leafRecordText}. Matching takes 2.6 µs, parsing JSON and writing it again 5.5 µs. */
const RECORD = new RegExp(
  `^${leafRecordText('@', '@', '@').replace(/[.{}]/g, '\\$&').replaceAll('@', BASE64)}$`,
);

/** Parses a leaf record. Throws FormatError unless the bytes are exactly those that {@link leafRecord} makes of its fields. */
export function parseLeafRecord(record: Uint8Array): LeafFields {
  const [, digest, signature, publicKey] = RECORD.exec(fromUtf8(record)) ?? [];
  if (digest === undefined || signature === undefined || publicKey === undefined)
    throw new FormatError('it is not the canonical JSON of a hashedrekord 0.0.2');
  return {
    digest: fromBase64(digest, HASH_BYTES),
    signature: fromBase64(signature),
    publicKey: fromBase64(publicKey),
  };
}

/** Kind and version of the entry that a record says it is; undefined if it says none. */
export function recordKind(record: Uint8Array): { kind: string; version: string } | undefined {
  try {
    const { kind, apiVersion: version } = JSON.parse(fromUtf8(record));
    return typeof kind === 'string' && typeof version === 'string' ? { kind, version } : undefined;
  } catch {
    return undefined;
  }
}

/** A submission's leaf: the signed bytes, the log's record, and the record's hash. */
export interface Leaf {
  readonly signature: Uint8Array;
  readonly record: Uint8Array;
  readonly hash: Uint8Array;
}

/** The leaf of a signed statement, or of a payload of another type. */
export function rebuildLeaf(
  payload: Uint8Array,
  signature: Uint8Array,
  publicKey: Uint8Array,
  payloadType = IN_TOTO_PAYLOAD_TYPE,
): Leaf {
  return leafOf(preAuthEncoding(payloadType, payload), signature, publicKey);
}

/** The leaf of signed bytes: a statement's pre-authentication encoding. */
export function leafOf(pae: Uint8Array, signature: Uint8Array, publicKey: Uint8Array): Leaf {
  const record = leafRecord({ digest: sha256(pae), signature, publicKey });
  return { signature, record, hash: leafHash(record) };
}
