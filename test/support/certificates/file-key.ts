import { KeyObject } from 'node:crypto';
import type { KeySource } from '../../../src/server/keys/secrets.js';

/** The private key of a source that is a file. Throws if another process holds it. */
export function fileKey(source: KeySource): KeyObject {
  if (source instanceof KeyObject) return source;
  throw new Error(`the key ${source.keyId} is in another process`);
}
