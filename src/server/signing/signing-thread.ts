/** The worker thread of batch-signer.ts. Receives batches of messages and posts their signatures. */
import { type KeyObject, sign } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';

/** Messages for one key, concatenated, with the length of each. `batch` identifies the batch in the reply. */
export type SigningBatch = { batch: number; key: number; data: Uint8Array; lengths: number[] };

/** The signatures of a batch, concatenated in the order of its messages. */
export type SignedBatch = { batch: number; signatures: Uint8Array; lengths: number[] };

const keys = workerData as KeyObject[];

parentPort?.on('message', ({ batch, key, data, lengths }: SigningBatch) => {
  const privateKey = keys[key];
  if (privateKey === undefined) throw new Error(`there is no key ${key}`);
  const signatures: Buffer[] = [];
  let at = 0;
  for (const length of lengths) {
    signatures.push(sign('sha256', data.subarray(at, at + length), { key: privateKey, dsaEncoding: 'der' }));
    at += length;
  }
  const signed: SignedBatch = {
    batch,
    signatures: Uint8Array.from(Buffer.concat(signatures)),
    lengths: signatures.map((signature) => signature.length),
  };
  parentPort?.postMessage(signed, [signed.signatures.buffer as ArrayBuffer]);
});
