/** Signing with a key that another process holds, such as one in front of an HSM. docs/signing-process.md has the protocol. */
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { fromBase64, toBase64 } from '../../../proof/bytes/encoding.js';
import type { SocketKey } from '../secrets.js';
import { SigningError } from '../signing-error.js';
import { openConnection } from './socket-connection.js';
import type { Texts } from './socket-frames.js';

/** An algorithm of signing processes: the form of its public keys, and the check of its signatures. */
type Algorithm = {
  readonly name: string;
  isAlgorithmOf(key: KeyObject): boolean;
  verify(key: KeyObject, data: Uint8Array, signature: Uint8Array): boolean;
};

/** ECDSA with SHA-256, signatures in DER. */
export const ECDSA_P256: Algorithm = {
  name: 'ECDSA P-256',
  isAlgorithmOf: ({ asymmetricKeyDetails }) => asymmetricKeyDetails?.namedCurve === 'prime256v1',
  verify: (key, data, signature) => verify('sha256', data, { key, dsaEncoding: 'der' }, signature),
};

/** Ed25519 (RFC 8032), signatures of 64 bytes. */
export const ED25519: Algorithm = {
  name: 'Ed25519',
  isAlgorithmOf: ({ asymmetricKeyType }) => asymmetricKeyType === 'ed25519',
  verify: (key, data, signature) => verify(null, data, key, signature),
};

/** A signing process that answers, and has no such key or does not want to sign. */
export class SigningRefused extends SigningError {}

/** A key of a signing process. */
type SocketSigner = {
  /** SPKI in DER. */
  spki: Uint8Array;
  /** A verified signature. Rejects with a SigningError if the process is away, refuses, or is wrong. */
  sign(data: Uint8Array): Promise<Uint8Array>;
  /** Rejects with a SigningError if the process is away or has another key by now. */
  check(): Promise<void>;
  close(): Promise<void>;
};

const MAX_REASON = 200;

/**
 * Asks a signing process for a public key and returns the key's signer. It connects again when it is used after a
 * failure. Rejects with a SigningError if the process is away or lacks the key.
 */
export async function openSocketSigner(
  { socketPath, keyId }: SocketKey,
  algorithm: Algorithm,
): Promise<SocketSigner> {
  let connection = openConnection(socketPath);
  let isClosed = false;
  const ask = async (request: Texts, member: string): Promise<Uint8Array> => {
    if (!isClosed && !connection.isOpen()) connection = openConnection(socketPath);
    const answer = await connection.send({ ...request, key: keyId });
    if (answer.error !== undefined) throw new SigningRefused(`it refuses: ${printable(answer.error)}`);
    return readBytes(answer, member);
  };
  const naming = async <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: Error) => {
      const Kind = error instanceof SigningRefused ? SigningRefused : SigningError;
      throw new Kind(`the signing process at ${socketPath} cannot sign with ${keyId}: ${error.message}`);
    });
  const close = async () => {
    isClosed = true;
    connection.close();
  };
  try {
    const spki = await naming(ask({ op: 'public_key' }, 'public_key'));
    const publicKey = await naming(readPublicKey(spki, algorithm));
    const sign = async (data: Uint8Array) => {
      const signature = await ask({ op: 'sign', data: toBase64(data) }, 'signature');
      if (algorithm.verify(publicKey, data, signature)) return signature;
      throw new Error('its signature is not valid');
    };
    const check = async () => {
      const now = await ask({ op: 'public_key' }, 'public_key');
      if (Buffer.compare(now, spki) !== 0) throw new Error('it has another key by now');
    };
    return { spki, sign: (data) => naming(sign(data)), check: () => naming(check()), close };
  } catch (error) {
    await close();
    throw error;
  }
}

function readBytes(answer: Texts, member: string): Uint8Array {
  try {
    return fromBase64(answer[member] ?? '-');
  } catch {
    throw new Error(`its answer has no ${member} in base64`);
  }
}

async function readPublicKey(spki: Uint8Array, { name, isAlgorithmOf }: Algorithm): Promise<KeyObject> {
  const key = tryPublicKey(spki);
  if (key !== undefined && isAlgorithmOf(key)) return key;
  throw new Error(`its key is not an ${name} key in SPKI`);
}

function tryPublicKey(spki: Uint8Array): KeyObject | undefined {
  try {
    return createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
  } catch {
    return undefined;
  }
}

/** The text of another process, as a part of one line. */
function printable(text: string): string {
  return text.slice(0, MAX_REASON).replace(/[^\x20-\x7e]/g, '?');
}
