/** The worker thread of object-hash.ts: hashes the bytes of one object, and those of each of its parts. */
import { createHash } from 'node:crypto';
import { parentPort } from 'node:worker_threads';

/** Bytes of the object that follow those before, or the question for the SHA-256 of the part or object that ends there. */
export type HashRequest = Uint8Array | 'part' | 'object';

const object = createHash('sha256');
let part = createHash('sha256');

parentPort?.on('message', (request: HashRequest) => {
  if (request === 'object') parentPort?.postMessage(object.digest());
  else if (request === 'part') {
    parentPort?.postMessage(part.digest());
    part = createHash('sha256');
  } else {
    part.update(request);
    object.update(request);
  }
});
