import { constants, type KeyObject, type SigningOptions, verify, X509Certificate } from 'node:crypto';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { type Sign1, sigStructure } from '../../../proof/cose/sign1.js';
import { ApiError } from '../../core/errors.js';

/** A signature algorithm of COSE: what Node's crypto takes, and the keys that it is for. */
type Algorithm = {
  readonly name: string;
  /** Undefined if the algorithm has one of its own. */
  readonly hash: string | undefined;
  readonly options: SigningOptions;
  readonly keyType: 'ec' | 'rsa' | 'ed25519';
  readonly curves?: readonly string[];
};

const NIST_CURVES = ['prime256v1', 'secp384r1', 'secp521r1'];

function ecdsa(name: string, hash: string, curves: readonly string[] = NIST_CURVES): Algorithm {
  return { name, hash, keyType: 'ec', curves, options: { dsaEncoding: 'ieee-p1363' } };
}

function pss(name: string, hash: string): Algorithm {
  const { RSA_PKCS1_PSS_PADDING: padding, RSA_PSS_SALTLEN_DIGEST: saltLength } = constants;
  return { name, hash, keyType: 'rsa', options: { padding, saltLength } };
}

function ed25519(name: string): Algorithm {
  return { name, hash: undefined, keyType: 'ed25519', options: {} };
}

/** The signature algorithms by their numbers in COSE (RFC 9053, RFC 8812, RFC 9864). */
const ALGORITHMS: ReadonlyMap<unknown, Algorithm> = new Map([
  [-7, ecdsa('ES256', 'sha256')],
  [-35, ecdsa('ES384', 'sha384')],
  [-36, ecdsa('ES512', 'sha512')],
  [-9, ecdsa('ESP256', 'sha256', ['prime256v1'])],
  [-51, ecdsa('ESP384', 'sha384', ['secp384r1'])],
  [-52, ecdsa('ESP512', 'sha512', ['secp521r1'])],
  [-8, ed25519('EdDSA')],
  [-19, ed25519('Ed25519')],
  [-37, pss('PS256', 'sha256')],
  [-38, pss('PS384', 'sha384')],
  [-39, pss('PS512', 'sha512')],
]);

/** The name of a signature algorithm. Throws `scitt.bad_algorithm` if the service does not know it. */
export function algorithmName(label: unknown): string {
  return getAlgorithm(label).name;
}

function getAlgorithm(label: unknown): Algorithm {
  const algorithm = ALGORITHMS.get(label);
  if (algorithm !== undefined) return algorithm;
  const known = [...ALGORITHMS].map(([number, { name }]) => `${name} (${number})`).join(', ');
  throw new ApiError(
    ErrorCode.SCITT_BAD_ALGORITHM,
    `the algorithm (1) of the protected header is none of ${known}`,
  );
}

/**
 * Verifies the signature of a statement by the key of a certificate in DER. The certificate itself is not verified: neither
 * its issuer nor its time. Throws `scitt.rejected`.
 */
export function assertSignedBy(certificate: Uint8Array, label: unknown, message: Sign1): void {
  const algorithm = getAlgorithm(label);
  const key = readKey(certificate);
  const isOfKind =
    key.asymmetricKeyType === algorithm.keyType &&
    (algorithm.curves?.includes(key.asymmetricKeyDetails?.namedCurve ?? '') ?? true);
  if (!isOfKind) throw rejected(`the key of the first certificate of x5chain is not for ${algorithm.name}`);
  if (!isSigned(key, algorithm, message))
    throw rejected('the signature is not by the first certificate of x5chain');
}

function isSigned(key: KeyObject, { hash, options }: Algorithm, message: Sign1): boolean {
  try {
    return verify(hash, sigStructure(message), { key, ...options }, message.signature);
  } catch {
    // OpenSSL throws for some signatures that are none.
    return false;
  }
}

const DER_SEQUENCE = 0x30;

function readKey(certificate: Uint8Array): KeyObject {
  try {
    if (certificate[0] !== DER_SEQUENCE) throw new Error('it is not DER');
    return new X509Certificate(certificate).publicKey;
  } catch {
    throw rejected('the first certificate of x5chain cannot be read');
  }
}

function rejected(message: string): ApiError {
  return new ApiError(ErrorCode.SCITT_REJECTED, message);
}
