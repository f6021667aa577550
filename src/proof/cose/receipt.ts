/**
 * COSE receipts of inclusion (RFC 9942) in a log of RFC 9162: a COSE_Sign1 (RFC 9052) over the detached root of the tree,
 * with the path from the leaf to it.
 */
import { FormatError } from '../bytes/format-error.js';
import { HASH_BYTES } from '../log/merkle.js';
import { type CborValue, decodeCbor, encodeCbor } from './cbor.js';
import { SIGN1_TAG, sigStructure } from './sign1.js';

/** The signed header: the log's origin as the issuer, the submission's id as the subject, and the key's id. */
type ReceiptHeader = {
  /** The proof names the size as well, but the root does not depend on it alone: without this it could be changed. */
  readonly size: number;
  readonly issuer: string;
  readonly subject: string;
  /** SHA-256 of the key's SPKI in DER. */
  readonly keyId: Uint8Array;
};

/** The leaf's place in the tree, and its path to the root. */
export type Inclusion = {
  readonly size: number;
  readonly index: number;
  readonly path: readonly Uint8Array[];
};

/** A parsed receipt. `protectedHeader` is the encoded header; `signature` is r and s, 32 bytes each. */
export type Receipt = ReceiptHeader &
  Inclusion & { readonly protectedHeader: Uint8Array; readonly signature: Uint8Array };

const [ALG, KID, CWT_CLAIMS, VDS, VDP] = [1, 4, 15, 395, 396];
const ES256 = -7;
const RFC9162_SHA256 = 1;
/** The third is for private use (RFC 8392, section 9.1.1). */
const [ISS, SUB, TREE_SIZE] = [1, 2, -65_537];
const INCLUSION = -1;
const SIGNATURE_BYTES = 64;
const KEY_ID_BYTES = 32;

/** Encodes the header that is signed with the root. */
export function encodeReceiptHeader({ issuer, subject, keyId, size }: ReceiptHeader): Uint8Array {
  const claims = new Map<number, CborValue>([
    [ISS, issuer],
    [SUB, subject],
    [TREE_SIZE, size],
  ]);
  return encodeCbor(
    new Map<number, CborValue>([
      [ALG, ES256],
      [KID, keyId],
      [CWT_CLAIMS, claims],
      [VDS, RFC9162_SHA256],
    ]),
  );
}

/**
 * The bytes signed with ES256, of which the root is the payload. They cannot be the input of a DSSE
 * signature.
 */
export function receiptToSign(protectedHeader: Uint8Array, root: Uint8Array): Uint8Array {
  return sigStructure({ protectedHeader, payload: root });
}

/** Encodes a receipt. Throws RangeError for a tree of one leaf: the format has no empty path. */
export function encodeReceipt(
  receipt: Pick<Receipt, 'protectedHeader' | 'signature' | keyof Inclusion>,
): Uint8Array {
  const { protectedHeader, size, index, path, signature } = receipt;
  if (path.length === 0) throw new RangeError('a receipt has no empty path');
  const proofs = new Map([[INCLUSION, [encodeCbor([size, index, [...path]])]]]);
  const unprotected = new Map([[VDP, proofs]]);
  return encodeCbor({ tag: SIGN1_TAG, value: [protectedHeader, unprotected, null, signature] });
}

/** Parses a receipt of this form. Throws FormatError for any other; checks no signature. */
export function parseReceipt(bytes: Uint8Array): Receipt {
  const message = decodeCbor(bytes);
  if (message === null || typeof message !== 'object' || !('tag' in message) || message.tag !== SIGN1_TAG) {
    throw new FormatError('it is not a COSE_Sign1');
  }
  const [protectedHeader, unprotected, payload, signature] = arrayOf(message.value, 4, 'the COSE_Sign1');
  if (payload !== null) throw new FormatError('its payload is not detached');
  const header = bytesOf(protectedHeader, 'the protected header');
  const signed = parseHeader(header);
  const inclusion = parseProofs(unprotected);
  if (signed.size !== inclusion.size) throw new FormatError('its proof is of another tree size');
  return {
    ...signed,
    ...inclusion,
    protectedHeader: header,
    signature: bytesOf(signature, 'the signature', SIGNATURE_BYTES),
  };
}

function parseHeader(header: Uint8Array): ReceiptHeader {
  const members = mapOf(decodeCbor(header), [ALG, KID, CWT_CLAIMS, VDS], 'the protected header');
  if (members.get(ALG) !== ES256) throw new FormatError('its algorithm is not ES256');
  if (members.get(VDS) !== RFC9162_SHA256) throw new FormatError('its log is not of RFC9162_SHA256');
  const claims = mapOf(members.get(CWT_CLAIMS), [ISS, SUB, TREE_SIZE], 'the claims');
  return {
    size: Number(claims.get(TREE_SIZE)),
    issuer: textOf(claims.get(ISS)),
    subject: textOf(claims.get(SUB)),
    keyId: bytesOf(members.get(KID), 'the key id', KEY_ID_BYTES),
  };
}

function parseProofs(unprotected: CborValue | undefined): Inclusion {
  const proofs = mapOf(
    mapOf(unprotected, [VDP], 'the unprotected header').get(VDP),
    [INCLUSION],
    'the proofs',
  );
  const [only] = arrayOf(proofs.get(INCLUSION), 1, 'the inclusion proofs');
  const [size, index, path] = arrayOf(
    decodeCbor(bytesOf(only, 'the inclusion proof')),
    3,
    'the inclusion proof',
  );
  if (typeof size !== 'number' || typeof index !== 'number' || index < 0 || index >= size) {
    throw new FormatError('its leaf is not in its tree');
  }
  if (!Array.isArray(path) || path.length === 0) throw new FormatError('it has no inclusion path');
  return {
    size,
    index,
    path: path.map((hash: CborValue) => bytesOf(hash, 'a hash of the path', HASH_BYTES)),
  };
}

function arrayOf(value: CborValue | undefined, length: number, name: string): readonly CborValue[] {
  if (Array.isArray(value) && value.length === length) return value;
  throw new FormatError(`${name} is not an array of ${length}`);
}

/** Maps with exactly these keys: no part of a receipt is ignored. */
function mapOf(
  value: CborValue | undefined,
  keys: readonly number[],
  name: string,
): ReadonlyMap<number, CborValue> {
  if (value instanceof Map && value.size === keys.length && keys.every((key) => value.has(key))) return value;
  throw new FormatError(`${name} does not have the labels ${keys.join(', ')}`);
}

function bytesOf(value: CborValue | undefined, name: string, length?: number): Uint8Array {
  if (value instanceof Uint8Array && value.length === (length ?? value.length)) return value;
  throw new FormatError(`${name} is not a byte string${length === undefined ? '' : ` of ${length}`}`);
}

function textOf(value: CborValue | undefined): string {
  if (typeof value === 'string') return value;
  throw new FormatError('a claim is not a text');
}
