/** The thread that signs: see batch-signer.ts. Takes a batch of messages joined in one buffer, answers its signatures. */
import { type KeyObject, sign } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';

/** Messages for one key, joined; `lengths` says where each ends. */
export type SigningBatch = { batch: number; key: number; data: Uint8Array; lengths: number[] };

/** The signatures of a batch in its order, joined. */
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
