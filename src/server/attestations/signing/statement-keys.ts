import { createPublicKey, KeyObject } from 'node:crypto';
import { toBase64 } from '../../../proof/bytes/encoding.js';
import { ENVIRONMENTS } from '../../../protocol/environment.js';
import { limitConcurrency } from '../../core/limit-concurrency.js';
import type { ShutdownHooks } from '../../core/shutdown.js';
import { type KeySource, type SigningKeys, signingKeysOf } from '../../keys/secrets.js';
import { SigningError } from '../../keys/signing-error.js';
import { ECDSA_P256, openSocketSigner } from '../../keys/socket/socket-signer.js';
import type { SignedStatement } from '../create/new-submission.js';
import { createBatchSigner } from './batch-signer.js';
import { signedBytes, signedStatement } from './sign-statement.js';

/** A key that signs statements. The private part may be elsewhere: nothing else is ever asked of it. */
type StatementKey = {
  /** The public key, SPKI in DER. */
  spki: Uint8Array;
  /** Signs a statement's text by ECDSA P-256 with SHA-256. Rejects if it cannot sign now. */
  sign(statement: string): Promise<SignedStatement>;
  /** The same for many at once. Rejects if it cannot sign one of them. */
  signMany(statements: readonly string[]): Promise<SignedStatement[]>;
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
  const files = held.flatMap(({ key }) =>
    key instanceof KeyObject ? [{ privateKey: key, publicKey: toBase64(spkiOf(key)) }] : [],
  );
  const batchSigner = createBatchSigner(files);
  hooks.add(batchSigner.close);
  const open = async (key: KeySource): Promise<StatementKey> => {
    if (key instanceof KeyObject) {
      const signer = batchSigner.signers[files.findIndex(({ privateKey }) => privateKey === key)];
      if (signer === undefined) throw new Error('a key in a file has no signer');
      return { spki: spkiOf(key), ...signer, check: async () => {} };
    }
    const { spki, sign, check, close } = await openSocketSigner(key, ECDSA_P256);
    hooks.add(close);
    const publicKey = toBase64(spki);
    const signText = async (statement: string) => {
      const bytes = signedBytes(statement);
      return signedStatement(bytes, await sign(bytes), publicKey);
    };
    const run = limitConcurrency(OF_BATCHES, tooMany);
    const signMany = (statements: readonly string[]) =>
      Promise.all(statements.map((statement) => run(() => signText(statement))));
    return { spki, sign: signText, signMany, check };
  };
  const opened: HeldKey[] = [];
  for (const { environment, key } of held) opened.push({ environment, ...(await open(key)) });
  return opened;
}

/**
 * Signatures of batches that a signing process is asked for at once, of the 1,000 that it allows: the others are for single
 * submissions. With 20 ms a signature, a slice of 250 takes 20 ms, and took 80 when 64 were asked for in turn.
 */
const OF_BATCHES = { maxConcurrent: 500, maxQueued: 100_000 };

function tooMany(): Error {
  return new SigningError(`${OF_BATCHES.maxQueued} statements of batches wait for the signing process`);
}

function spkiOf(key: KeyObject): Uint8Array {
  return createPublicKey(key).export({ type: 'spki', format: 'der' });
}
