/** Hash and signature algorithms of time-stamp tokens, and the check of a signature by Web Crypto. */
import { type DerNode, TAG } from '../asn1/der.js';
import { membersOf, objectIdentifier } from '../asn1/der-read.js';
import { findRawEcdsa } from '../asn1/ecdsa-signature.js';
import { FormatError } from '../bytes/format-error.js';
import { TimestampError } from './error.js';

/** An AlgorithmIdentifier whose parameters are absent or NULL, which is all that the algorithms here allow. */
export type AlgorithmOid = string;

/** As Web Crypto names it. */
export type HashName = 'SHA-1' | 'SHA-256' | 'SHA-384' | 'SHA-512';

type SignatureScheme = { family: 'RSA' | 'EC'; hash: HashName | undefined };

export const SHA256_OID = '2.16.840.1.101.3.4.2.1';

const HASHES: ReadonlyMap<AlgorithmOid, HashName> = new Map([
  [SHA256_OID, 'SHA-256'],
  ['2.16.840.1.101.3.4.2.2', 'SHA-384'],
  ['2.16.840.1.101.3.4.2.3', 'SHA-512'],
]);

/** rsaEncryption leaves the hash to the signer's digestAlgorithm (RFC 3370, section 3.2). */
const SIGNATURES: ReadonlyMap<AlgorithmOid, SignatureScheme> = new Map([
  ['1.2.840.113549.1.1.1', { family: 'RSA', hash: undefined }],
  ['1.2.840.113549.1.1.11', { family: 'RSA', hash: 'SHA-256' }],
  ['1.2.840.113549.1.1.12', { family: 'RSA', hash: 'SHA-384' }],
  ['1.2.840.113549.1.1.13', { family: 'RSA', hash: 'SHA-512' }],
  ['1.2.840.10045.4.3.2', { family: 'EC', hash: 'SHA-256' }],
  ['1.2.840.10045.4.3.3', { family: 'EC', hash: 'SHA-384' }],
  ['1.2.840.10045.4.3.4', { family: 'EC', hash: 'SHA-512' }],
]);

const CURVES: ReadonlyMap<string, { namedCurve: string; scalarBytes: number }> = new Map([
  ['1.2.840.10045.3.1.7', { namedCurve: 'P-256', scalarBytes: 32 }],
  ['1.3.132.0.34', { namedCurve: 'P-384', scalarBytes: 48 }],
  ['1.3.132.0.35', { namedCurve: 'P-521', scalarBytes: 66 }],
]);

const RSA_KEY_OID = '1.2.840.113549.1.1.1';
const EC_KEY_OID = '1.2.840.10045.2.1';

/** OID of an AlgorithmIdentifier. Throws FormatError when it has parameters other than NULL. */
export function algorithmOid(node: DerNode, name: string): AlgorithmOid {
  const members = membersOf(node, name);
  const oid = objectIdentifier(members.takeAny(), name);
  const parameters = members.takeIf(0x05);
  if (parameters !== undefined && parameters.content.length > 0)
    throw new FormatError(`${name} has odd parameters`);
  members.end();
  return oid;
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
 * Whether `signature` over `data` is by the key in `spki`. `digestOid` is the signer's digest algorithm. Throws
 * TimestampError `algorithm_unsupported`; a signature of the wrong form is false.
 */
export async function verifySignature(
  spki: DerNode,
  algorithm: { signatureOid: AlgorithmOid; digestOid: AlgorithmOid },
  data: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  const scheme = SIGNATURES.get(algorithm.signatureOid);
  if (scheme === undefined) throw unsupported(`signature algorithm ${algorithm.signatureOid}`);
  const hash = scheme.hash ?? hashName(algorithm.digestOid);
  const key = readKey(spki);
  if (key.family !== scheme.family) return false;
  const value = key.scalarBytes === undefined ? signature : findRawEcdsa(signature, key.scalarBytes);
  if (value === undefined) return false;
  const parameters = { ...key.parameters, hash };
  const imported = await importKey(spki.raw, parameters);
  return globalThis.crypto.subtle.verify(parameters, imported, Uint8Array.from(value), Uint8Array.from(data));
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

function readKey(spki: DerNode) {
  const members = membersOf(membersOf(spki, 'SubjectPublicKeyInfo').take(TAG.sequence), 'key algorithm');
  const oid = objectIdentifier(members.takeAny(), 'key algorithm');
  if (oid === RSA_KEY_OID) {
    return { family: 'RSA', scalarBytes: undefined, parameters: { name: 'RSASSA-PKCS1-v1_5' } } as const;
  }
  if (oid !== EC_KEY_OID) throw unsupported(`key algorithm ${oid}`);
  const curveOid = objectIdentifier(members.take(TAG.oid), 'curve');
  const curve = CURVES.get(curveOid);
  if (curve === undefined) throw unsupported(`curve ${curveOid}`);
  const parameters = { name: 'ECDSA', namedCurve: curve.namedCurve };
  return { family: 'EC', scalarBytes: curve.scalarBytes, parameters } as const;
}

function unsupported(what: string): TimestampError {
  return new TimestampError('algorithm_unsupported', `${what} is not supported`);
}
