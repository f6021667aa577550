/**
 * The worker thread of batch-signer.ts. Receives statements and posts them signed, as text both ways. It hashes
 * the leaves as well, off the main thread.
 */
import { type KeyObject, sign } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import { signedBytes, signedStatement } from './sign-statement.js';

/** A key that signs, and its public part: SPKI in DER, in base64. */
export type SigningKey = { privateKey: KeyObject; publicKey: string };

/** Texts of statements for one key, one per line. `batch` identifies the batch in the reply. */
export type SigningBatch = { batch: number; key: number; statements: string };

/** The signed statements of a batch, in its order, one per line: the hash of the leaf, then the signature, in hex. */
export type SignedBatch = { batch: number; signed: string };

const keys = workerData as SigningKey[];

parentPort?.on('message', ({ batch, key, statements }: SigningBatch) => {
  const signingKey = keys[key];
  if (signingKey === undefined) throw new Error(`there is no key ${key}`);
  const { privateKey, publicKey } = signingKey;
  const signed = statements.split('\n').map((statement) => {
    const bytes = signedBytes(statement);
    const signature = sign('sha256', bytes, { key: privateKey, dsaEncoding: 'der' });
    const { leafHash, signature: hex } = signedStatement(bytes, signature, publicKey);
    return leafHash + hex;
  });
  parentPort?.postMessage({ batch, signed: signed.join('\n') } satisfies SignedBatch);
});
