import { toHex, utf8 } from '../../proof/bytes/encoding.js';
import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../../proof/statement/dsse.js';
import { leafOf } from '../../proof/statement/leaf.js';

/** What a submission stores of its signed statement, in lower-case hex: the signature (DER) and the hash of its leaf. */
export type SignedStatement = { readonly signature: string; readonly leafHash: string };

/** The bytes that are signed for a statement's text. */
export function signedBytes(statement: string): Uint8Array {
  return preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, utf8(statement));
}

/** The signed statement of {@link signedBytes}, their signature (DER) and the public key (SPKI in DER). */
export function signedStatement(
  signed: Uint8Array,
  signature: Uint8Array,
  spki: Uint8Array,
): SignedStatement {
  return { signature: toHex(signature), leafHash: toHex(leafOf(signed, signature, spki).hash) };
}
