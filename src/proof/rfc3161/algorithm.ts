/** Hash and signature algorithms of time-stamp tokens, and verification of signatures by Web Crypto. */
import { type DerNode, TAG } from '../asn1/der.js';
import { membersOf, objectIdentifier } from '../asn1/der-read.js';
import { derElement, derObjectIdentifier, derSequence } from '../asn1/der-write.js';
import { findRawEcdsa } from '../asn1/ecdsa-signature.js';
import { FormatError } from '../bytes/format-error.js';
import { TimestampError } from './error.js';

/** An AlgorithmIdentifier whose parameters are absent or NULL, which is all that the algorithms here allow. */
export type AlgorithmOid = string;

/** As Web Crypto names it. */
export type HashName = 'SHA-1' | 'SHA-256' | 'SHA-384' | 'SHA-512';

/** A signature algorithm as Web Crypto names it; `saltLength`, in bytes, is that of RSA-PSS. */
export type SignatureScheme = {
  readonly name: 'RSASSA-PKCS1-v1_5' | 'RSA-PSS' | 'ECDSA';
  readonly hash: HashName;
  readonly saltLength?: number;
};

export const SHA256_OID = '2.16.840.1.101.3.4.2.1';

const HASHES: ReadonlyMap<AlgorithmOid, HashName> = new Map([
  [SHA256_OID, 'SHA-256'],
  ['2.16.840.1.101.3.4.2.2', 'SHA-384'],
  ['2.16.840.1.101.3.4.2.3', 'SHA-512'],
]);

/** Signature algorithms of tokens and of certificates. */
export const SIGNATURES: ReadonlyMap<AlgorithmOid, SignatureScheme> = new Map([
  ['1.2.840.113549.1.1.11', { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }],
  ['1.2.840.113549.1.1.12', { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-384' }],
  ['1.2.840.113549.1.1.13', { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-512' }],
  ['1.2.840.10045.4.3.2', { name: 'ECDSA', hash: 'SHA-256' }],
  ['1.2.840.10045.4.3.3', { name: 'ECDSA', hash: 'SHA-384' }],
  ['1.2.840.10045.4.3.4', { name: 'ECDSA', hash: 'SHA-512' }],
]);

const CURVES: ReadonlyMap<string, { namedCurve: string; scalarBytes: number }> = new Map([
  ['1.2.840.10045.3.1.7', { namedCurve: 'P-256', scalarBytes: 32 }],
  ['1.3.132.0.34', { namedCurve: 'P-384', scalarBytes: 48 }],
  ['1.3.132.0.35', { namedCurve: 'P-521', scalarBytes: 66 }],
]);

export const RSA_PSS_OID = '1.2.840.113549.1.1.10';
const RSA_KEY_OID = '1.2.840.113549.1.1.1';
const EC_KEY_OID = '1.2.840.10045.2.1';

/** OID of an AlgorithmIdentifier. Throws FormatError when it has parameters other than NULL. */
export function algorithmOid(node: DerNode, name: string): AlgorithmOid {
  const members = membersOf(node, name);
  const oid = objectIdentifier(members.takeAny(), name);
  const parameters = members.takeIf(TAG.null);
  if (parameters !== undefined && parameters.content.length > 0)
    throw new FormatError(`${name} has odd parameters`);
  members.end();
  return oid;
}

/** Whether an OID is that of SHA-256, SHA-384 or SHA-512. */
export function isHash(oid: AlgorithmOid): boolean {
  return HASHES.has(oid);
}

/** OID of a digest algorithm. Throws RangeError on SHA-1. */
export function hashOidOf(hash: HashName): AlgorithmOid {
  for (const [oid, name] of HASHES) if (name === hash) return oid;
  throw new RangeError(`${hash} is not supported`);
}

/** Web Crypto's name of a digest algorithm; throws TimestampError `algorithm_unsupported` on any but SHA-256, -384, -512. */
export function hashName(oid: AlgorithmOid): HashName {
  const hash = HASHES.get(oid);
  if (hash === undefined)
    throw new TimestampError('algorithm_unsupported', `digest algorithm ${oid} is not supported`);
  return hash;
}

/** Digest of `data`. */
export async function digest(hash: HashName, data: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await globalThis.crypto.subtle.digest(hash, Uint8Array.from(data)));
}

/**
 * Whether `signature` over `data` is by the key in `spki`. `digestOid` is the signer's digest algorithm, which names the
 * hash where the signature algorithm is rsaEncryption (RFC 3370, section 3.2). Throws TimestampError
 * `algorithm_unsupported`; a malformed signature is false.
 */
export async function verifySignature(
  spki: DerNode,
  algorithm: { signatureOid: AlgorithmOid; digestOid: AlgorithmOid },
  data: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  const { signatureOid, digestOid } = algorithm;
  const scheme =
    signatureOid === RSA_KEY_OID
      ? ({ name: 'RSASSA-PKCS1-v1_5', hash: hashName(digestOid) } as const)
      : SIGNATURES.get(signatureOid);
  if (scheme === undefined) throw unsupported(`signature algorithm ${signatureOid}`);
  return verifyByScheme(spki, scheme, data, signature);
}

/**
 * Whether `signature` over `data` is by the key in `spki`. False if the key is of another kind than the scheme, or the
 * signature malformed. Throws TimestampError `algorithm_unsupported`.
 */
export async function verifyByScheme(
  spki: DerNode,
  scheme: SignatureScheme,
  data: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  const key = readKey(spki, scheme);
  if (key === undefined) return false;
  const value = key.scalarBytes === undefined ? signature : findRawEcdsa(signature, key.scalarBytes);
  if (value === undefined) return false;
  const imported = await importKey(key.isPss ? asRsaKey(spki) : spki.raw, { ...scheme, ...key });
  return globalThis.crypto.subtle.verify(scheme, imported, Uint8Array.from(value), Uint8Array.from(data));
}

async function importKey(
  spki: Uint8Array,
  parameters: { name: string; hash: HashName; namedCurve?: string },
) {
  try {
    return await globalThis.crypto.subtle.importKey('spki', Uint8Array.from(spki), parameters, false, [
      'verify',
    ]);
  } catch (error) {
    throw new TimestampError('algorithm_unsupported', "the signer's key cannot be used", { cause: error });
  }
}

/** Web Crypto's import parameters for the key; undefined if the key's kind does not fit the scheme. */
function readKey(
  spki: DerNode,
  { name }: SignatureScheme,
): { namedCurve?: string; scalarBytes?: number; isPss?: boolean } | undefined {
  const members = membersOf(membersOf(spki, 'SubjectPublicKeyInfo').take(TAG.sequence), 'key algorithm');
  const oid = objectIdentifier(members.takeAny(), 'key algorithm');
  if (oid === RSA_KEY_OID) return name === 'ECDSA' ? undefined : {};
  if (oid === RSA_PSS_OID && name === 'RSA-PSS') return { isPss: true };
  if (oid !== EC_KEY_OID) throw unsupported(`key algorithm ${oid}`);
  const curveOid = objectIdentifier(members.take(TAG.oid), 'curve');
  const curve = CURVES.get(curveOid);
  if (curve === undefined) throw unsupported(`curve ${curveOid}`);
  return name === 'ECDSA' ? curve : undefined;
}

/** An RSASSA-PSS key as an rsaEncryption key, the only form that Web Crypto imports. */
function asRsaKey(spki: DerNode): Uint8Array {
  const key = membersOf(spki, 'SubjectPublicKeyInfo');
  key.take(TAG.sequence);
  const algorithm = derSequence(derObjectIdentifier(RSA_KEY_OID), derElement(TAG.null));
  return derSequence(algorithm, key.take(TAG.bitString).raw);
}

function unsupported(what: string): TimestampError {
  return new TimestampError('algorithm_unsupported', `${what} is not supported`);
}
