/**
 * The worker thread of batch-signer.ts. Receives statements and posts them signed, as text both ways. It hashes
 * the leaves as well, off the main thread.
 */
import { type KeyObject, sign } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import type { SignedStatement } from '../rpc/attestations/new-submission.js';
import { signedBytes, signedStatement } from './sign-statement.js';

/** A key that signs, and its public part: SPKI in DER, in base64. */
export type SigningKey = { privateKey: KeyObject; publicKey: string };

/** Texts of statements for one key. `batch` identifies the batch in the reply. */
export type SigningBatch = { batch: number; key: number; statements: readonly string[] };

/** The signed statements of a batch, in its order. */
export type SignedBatch = { batch: number; signed: SignedStatement[] };

const keys = workerData as SigningKey[];

parentPort?.on('message', ({ batch, key, statements }: SigningBatch) => {
  const signingKey = keys[key];
  if (signingKey === undefined) throw new Error(`there is no key ${key}`);
  const { privateKey, publicKey } = signingKey;
  const signed = statements.map((statement) => {
    const bytes = signedBytes(statement);
    return signedStatement(bytes, sign('sha256', bytes, { key: privateKey, dsaEncoding: 'der' }), publicKey);
  });
  parentPort?.postMessage({ batch, signed } satisfies SignedBatch);
});
