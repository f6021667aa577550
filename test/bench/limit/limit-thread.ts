// Signs and hashes for the bare handler of creates, off its main thread: what the specification wants of each submission.
import { generateKeyPairSync, hash, sign } from 'node:crypto';
import { parentPort } from 'node:worker_threads';

/** Submissions of one turn of the event loop: hashes in hex, metadata as canonical JSON. */
export type SignTask = { batch: number; digests: string[]; salts: string[]; metadata: string[] };
/** Hex; signatures are in DER. */
export type Signed = { commitment: string; signature: string; leaf: string };
export type SignedTask = { batch: number; signed: Signed[] };

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });

parentPort?.on('message', ({ batch, digests, salts, metadata }: SignTask) => {
  const signed = digests.map((digest, n): Signed => {
    const commitment = hash('sha256', `${salts[n]}${metadata[n]}`);
    const statement = `{"subject":[{"digest":{"sha256":"${digest}"}}],"predicate":{"metadata":"${commitment}"}}`;
    const signature = sign('sha256', Buffer.from(statement), privateKey).toString('hex');
    return { commitment, signature, leaf: hash('sha256', `${digest}${signature}`) };
  });
  parentPort?.postMessage({ batch, signed } satisfies SignedTask);
});
