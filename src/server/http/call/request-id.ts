import { monotonicFactory } from 'ulid';
import { createRandomSource } from '../../core/random.js';

/** Makes request ids: `req_` and a ULID, increasing within a process. */
export function createRequestIds(nowMs: () => number): () => string {
  const next = monotonicFactory(createRandomSource().fraction);
  return () => `req_${next(nowMs())}`;
}
