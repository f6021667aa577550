/** The public files: their paths below `VERIFY_URL`, content types and how long caches keep them. */
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';

/** Content type and `Cache-Control` of a file. */
export type FileKind = { readonly contentType: string; readonly cacheControl: string };

export const CACHE_5_S = 'public, max-age=5';
const CACHE_60_S = 'public, max-age=60';
const CACHE_FOREVER = 'public, max-age=31536000, immutable';

export const CHECKPOINT: FileKind = { contentType: 'text/plain; charset=utf-8', cacheControl: CACHE_5_S };
export const POLICY: FileKind = { contentType: 'text/plain; charset=utf-8', cacheControl: CACHE_60_S };
export const ROOTS: FileKind = { contentType: 'application/json', cacheControl: CACHE_60_S };
export const LOG_PAGE: FileKind = { contentType: 'application/json', cacheControl: CACHE_5_S };
export const TILE: FileKind = { contentType: 'application/octet-stream', cacheControl: CACHE_FOREVER };
/** The only file of the TUF repository that is replaced. */
const TUF_TIMESTAMP: FileKind = { contentType: 'application/json', cacheControl: CACHE_5_S };
const TUF_FILE: FileKind = { contentType: 'application/json', cacheControl: CACHE_FOREVER };

export const TRUST_ROOTS = '/trust_roots.json';
export const TRUSTED_ROOTS = [
  { path: '/trusted_root.json', environment: Environment.LIVE },
  { path: '/trusted_root.test.json', environment: Environment.TEST },
];
export const POLICIES = [
  { path: '/policy', environment: Environment.LIVE },
  { path: '/policy.test', environment: Environment.TEST },
];

/** The cache time and type of a file of the TUF repository. */
export function tufFileKind(name: string): FileKind {
  return name === 'timestamp.json' ? TUF_TIMESTAMP : TUF_FILE;
}
