import { createPublicKey, KeyObject } from 'node:crypto';
import { ENVIRONMENTS } from '../../protocol/environment.js';
import type { ShutdownHooks } from '../core/shutdown.js';
import { type KeySource, type SigningKeys, signingKeysOf } from '../keys/secrets.js';
import { createBatchSigner } from './batch-signer.js';
import { ECDSA_P256, openSocketSigner } from './socket-signer.js';

/** A key that signs statements. The private part may be elsewhere: nothing else is ever asked of it. */
type StatementKey = {
  /** The public key, SPKI in DER. */
  spki: Uint8Array;
  /** ECDSA P-256 with SHA-256 in DER. Rejects if it cannot sign now. */
  sign(data: Uint8Array): Promise<Uint8Array>;
  /** The same for many at once. Rejects if it cannot sign one of them. */
  signMany(data: readonly Uint8Array[]): Promise<Uint8Array[]>;
  /** Rejects, in one line, if it cannot sign now. */
  check(): Promise<void>;
};

/** A statement key of an environment, a proto number. */
export type HeldKey = StatementKey & { environment: number };

/**
 * Opens the DSSE keys of a process. Keys in files sign on one worker thread, in batches; others in the processes that
 * hold them. Rejects if one of these is away.
 */
export async function openStatementKeys(
  keys: SigningKeys<KeySource>,
  hooks: Pick<ShutdownHooks, 'add'>,
): Promise<HeldKey[]> {
  const held = ENVIRONMENTS.flatMap((environment) =>
    signingKeysOf(keys, environment).map((key) => ({ environment, key })),
  );
  const files = held.flatMap(({ key }) => (key instanceof KeyObject ? [key] : []));
  const signer = createBatchSigner(files);
  hooks.add(signer.close);
  const open = async (key: KeySource): Promise<StatementKey> => {
    if (key instanceof KeyObject) {
      const place = files.indexOf(key);
      return {
        spki: spkiOf(key),
        sign: (data) => signer.sign(place, data),
        signMany: (data) => signer.signMany(place, data),
        check: async () => {},
      };
    }
    const remote = await openSocketSigner(key, ECDSA_P256);
    hooks.add(remote.close);
    return { ...remote, signMany: (data) => signInTurn(remote, data) };
  };
  const opened: HeldKey[] = [];
  for (const { environment, key } of held) opened.push({ environment, ...(await open(key)) });
  return opened;
}

/** Requests of one caller that wait for a signing process; others want to sign as well. */
const MAX_WAITING = 64;

async function signInTurn(
  { sign }: Pick<StatementKey, 'sign'>,
  data: readonly Uint8Array[],
): Promise<Uint8Array[]> {
  const signatures: Uint8Array[] = [];
  for (let at = 0; at < data.length; at += MAX_WAITING) {
    signatures.push(...(await Promise.all(data.slice(at, at + MAX_WAITING).map(sign))));
  }
  return signatures;
}

function spkiOf(key: KeyObject): Uint8Array {
  return createPublicKey(key).export({ type: 'spki', format: 'der' });
}
