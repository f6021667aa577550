/** COSE_Sign1 (RFC 9052): what is signed, and the form without what is not. */
import { encodeCbor } from './cbor.js';

/** The tag of a COSE_Sign1. */
export const SIGN1_TAG = 18;

/** The members of a COSE_Sign1 that its signature covers, and the signature. */
export type Sign1 = {
  /** The encoded protected header. */
  readonly protectedHeader: Uint8Array;
  readonly payload: Uint8Array;
  readonly signature: Uint8Array;
};

/** The bytes that are signed: the Sig_structure of RFC 9052, section 4.4, without external data. */
export function sigStructure({ protectedHeader, payload }: Omit<Sign1, 'signature'>): Uint8Array {
  return encodeCbor(['Signature1', protectedHeader, new Uint8Array(), payload]);
}

/** Encodes a COSE_Sign1 with its tag and an empty unprotected header, in deterministic CBOR. */
export function encodeSign1({ protectedHeader, payload, signature }: Sign1): Uint8Array {
  return encodeCbor({ tag: SIGN1_TAG, value: [protectedHeader, new Map(), payload, signature] });
}
