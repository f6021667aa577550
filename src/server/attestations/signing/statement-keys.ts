import { createPublicKey, KeyObject } from 'node:crypto';
import { toBase64 } from '../../../proof/bytes/encoding.js';
import { ENVIRONMENTS } from '../../../protocol/environment.js';
import type { ShutdownHooks } from '../../core/shutdown.js';
import { type KeySource, type SigningKeys, signingKeysOf } from '../../keys/secrets.js';
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
    return { spki, sign: signText, signMany: (statements) => signInTurn(signText, statements), check };
  };
  const opened: HeldKey[] = [];
  for (const { environment, key } of held) opened.push({ environment, ...(await open(key)) });
  return opened;
}

/** Requests of one caller that wait for a signing process; others want to sign as well. */
const MAX_WAITING = 64;

async function signInTurn(
  sign: StatementKey['sign'],
  statements: readonly string[],
): Promise<SignedStatement[]> {
  const signed: SignedStatement[] = [];
  for (let at = 0; at < statements.length; at += MAX_WAITING) {
    signed.push(...(await Promise.all(statements.slice(at, at + MAX_WAITING).map(sign))));
  }
  return signed;
}

function spkiOf(key: KeyObject): Uint8Array {
  return createPublicKey(key).export({ type: 'spki', format: 'der' });
}
