import { createPublicKey, KeyObject } from 'node:crypto';
import { findRawEcdsa } from '../../proof/asn1/ecdsa-signature.js';
import { ENVIRONMENTS } from '../../protocol/environment.js';
import type { ShutdownHooks } from '../core/shutdown.js';
import { type HeldLogKeys, type LogKey, localLogKey, type ReceiptKey } from '../keys/log-key.js';
import { rawEd25519PublicKey, type Secrets, type SocketKey, signingKeysOf } from '../keys/secrets.js';
import { ECDSA_P256, ED25519, openSocketSigner, SigningRefused } from '../keys/socket/socket-signer.js';

type Hooks = Pick<ShutdownHooks, 'add'>;

/** A signing process names the key of receipts after the log's key. */
const RECEIPT_SUFFIX = '/receipt';
const P256_SCALAR_BYTES = 32;

/** Opens the log keys of a process. Rejects with a SigningError if a signing process is away or lacks one. */
export async function openLogKeys(
  { log: keys, logMlDsa }: Pick<Secrets, 'log' | 'logMlDsa'>,
  hooks: Hooks,
): Promise<HeldLogKeys> {
  const held = ENVIRONMENTS.flatMap((environment) =>
    signingKeysOf(keys, environment).map((key) => ({ environment, key })),
  );
  const opened: LogKey[] = [];
  for (const { environment, key } of held) {
    const isLocal = key instanceof KeyObject;
    opened.push(isLocal ? localLogKey(key, environment) : await openRemote(key, environment, hooks));
  }
  return { log: opened, logMlDsa };
}

async function openRemote(key: SocketKey, environment: number, hooks: Hooks): Promise<LogKey> {
  const { spki, sign, check, close } = await openSocketSigner(key, ED25519);
  hooks.add(close);
  let receiptKey: ReceiptKey | undefined;
  return {
    environment,
    publicKey: rawPublicKey(spki),
    sign,
    check,
    openReceiptKey: async () => {
      receiptKey ??= await openReceiptKey(key, hooks);
      return receiptKey;
    },
  };
}

/** Undefined if the signing process has no such key. */
async function openReceiptKey(
  { socketPath, keyId }: SocketKey,
  hooks: Hooks,
): Promise<ReceiptKey | undefined> {
  try {
    const signer = await openSocketSigner({ socketPath, keyId: `${keyId}${RECEIPT_SUFFIX}` }, ECDSA_P256);
    hooks.add(signer.close);
    const sign = async (data: Uint8Array) => {
      const raw = findRawEcdsa(await signer.sign(data), P256_SCALAR_BYTES);
      if (raw === undefined) throw new Error('a verified signature is malformed');
      return raw;
    };
    return { spki: signer.spki, sign };
  } catch (error) {
    if (error instanceof SigningRefused) return undefined;
    throw error;
  }
}

/** Reads the public key of a log key in a signing process: 32 raw bytes. Rejects with a SigningError. */
export async function readRemoteLogKey(key: SocketKey): Promise<Uint8Array> {
  const { spki, close } = await openSocketSigner(key, ED25519);
  await close();
  return rawPublicKey(spki);
}

function rawPublicKey(spki: Uint8Array): Uint8Array {
  return rawEd25519PublicKey(createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' }));
}
