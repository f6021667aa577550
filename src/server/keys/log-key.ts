import { type KeyObject, sign } from 'node:crypto';
import type { MlDsaKey } from './ml-dsa-key.js';
import { deriveReceiptKey } from './receipt-key.js';
import { rawEd25519PublicKey, type SigningKeys, signingKeysOf } from './secrets.js';
import { KeyNotHeldError } from './signing-error.js';

/** An Ed25519 key that signs checkpoints. The private part may be in another process: nothing else is ever asked of it. */
export type LogKey = {
  /** A proto number. */
  readonly environment: number;
  /** 32 raw bytes. */
  readonly publicKey: Uint8Array;
  /** A signature of 64 bytes. Rejects with a SigningError if it cannot sign now. */
  sign(data: Uint8Array): Promise<Uint8Array>;
  /** Rejects with a SigningError if it cannot sign now. */
  check(): Promise<void>;
  /**
   * The key of the receipts of the log of this origin; undefined if there is none. Rejects with a SigningError if it is
   * not known now.
   */
  openReceiptKey(origin: string): Promise<ReceiptKey | undefined>;
};

/** The keys of logs that a process holds. */
export type HeldLogKeys = {
  readonly log: readonly LogKey[];
  readonly logMlDsa: SigningKeys<MlDsaKey> | undefined;
};

/** An ES256 key that signs COSE receipts. */
export type ReceiptKey = {
  /** SPKI in DER. */
  readonly spki: Uint8Array;
  /** A signature of 64 bytes, r and s. Rejects with a SigningError if it cannot sign now. */
  sign(data: Uint8Array): Promise<Uint8Array>;
};

/** A log's key in this process. The key of receipts is derived from it. */
export function localLogKey(key: KeyObject, environment: number): LogKey {
  return {
    environment,
    publicKey: rawEd25519PublicKey(key),
    sign: async (data) => sign(null, data, key),
    check: async () => {},
    openReceiptKey: async (origin) => {
      const { privateKey, spki } = deriveReceiptKey(key, origin);
      return {
        spki,
        sign: async (data) => sign('sha256', data, { key: privateKey, dsaEncoding: 'ieee-p1363' }),
      };
    },
  };
}

/** Finds the key of a log among those of a process. Throws a KeyNotHeldError if it is not there. */
export function findLogKey(
  { log: keys }: Pick<HeldLogKeys, 'log'>,
  log: { environment: number; origin: string; publicKey: Uint8Array },
): LogKey {
  const found = keys.find(
    (key) => key.environment === log.environment && isSame(key.publicKey, log.publicKey),
  );
  if (found === undefined)
    throw new KeyNotHeldError(`LOG_KEY_FILE does not hold the key of the log ${log.origin}`);
  return found;
}

/** Finds the ML-DSA-44 key that a log publishes among those of a process. */
export function findMlDsaKey(
  { logMlDsa: keys }: Pick<HeldLogKeys, 'logMlDsa'>,
  { environment, mlDsaPublicKey }: { environment: number; mlDsaPublicKey: Uint8Array | null },
): MlDsaKey | undefined {
  if (keys === undefined || mlDsaPublicKey === null) return undefined;
  return signingKeysOf(keys, environment).find(({ publicKey }) => isSame(publicKey, mlDsaPublicKey));
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
