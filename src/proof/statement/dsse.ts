/** DSSE v1: the statement's bytes, signed together with their type. */
import { concatBytes, toBase64, utf8 } from '../bytes/encoding.js';
import { sha256 } from '../bytes/primitives.js';

/** The payload type of in-toto statements. */
export const IN_TOTO_PAYLOAD_TYPE = 'application/vnd.in-toto+json';

/**
 * A DSSE envelope in JSON, as Sigstore bundles hold it; `payload` and `sig` are base64. `keyid` is empty: Python's
 * securesystemslib reads no envelope without the member, and Go's (cosign, sigstore-go) skips signatures with a key id of
 * another form than its own.
 */
export type DsseEnvelope = {
  readonly payload: string;
  readonly payloadType: string;
  readonly signatures: { readonly keyid: ''; readonly sig: string }[];
};

/** The bytes that are signed of an in-toto statement, up to the statement's length. */
export const IN_TOTO_PRE_AUTH = `DSSEv1 ${IN_TOTO_PAYLOAD_TYPE.length} ${IN_TOTO_PAYLOAD_TYPE} `;

/** The bytes that are signed: `DSSEv1 <len> <type> <len> <payload>`, lengths in bytes, decimal. */
export function preAuthEncoding(payloadType: string, payload: Uint8Array): Uint8Array {
  const typeBytes = utf8(payloadType).length;
  return concatBytes(utf8(`DSSEv1 ${typeBytes} ${payloadType} ${payload.length} `), payload);
}

/** How bundles name a DSSE key: base64 of SHA-256 of its SPKI in DER. Trust roots publish the same hash in hex. */
export function dsseKeyHint(spki: Uint8Array): string {
  return toBase64(sha256(spki));
}

/** The envelope of an in-toto statement with its one signature (DER). */
export function dsseEnvelope(statement: Uint8Array, signature: Uint8Array): DsseEnvelope {
  return {
    payload: toBase64(statement),
    payloadType: IN_TOTO_PAYLOAD_TYPE,
    signatures: [{ keyid: '', sig: toBase64(signature) }],
  };
}
