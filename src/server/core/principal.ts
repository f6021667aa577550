import type { Environment } from '../../../gen/attestation/v1/environment_pb.js';

/** A scope that every key has, so that it is not stored with any. */
export const UNIVERSAL_SCOPE = 'service:read';

/** One fixed window of a rate bucket: `limit` calls per `windowSeconds`. */
export type RateWindow = { windowSeconds: number; limit: number };

/** Who is calling: an API key and what it may do. Never holds the key's secret. */
export type Principal = {
  apiKeyId: string;
  projectId: string;
  environment: Environment.LIVE | Environment.TEST;
  /** Without the universal one. */
  scopes: readonly string[];
  /** Windows of the submissions bucket, shortest first: second, hour, UTC day. */
  submissionWindows: readonly RateWindow[];
  /** The window of the reads bucket. */
  readWindow: RateWindow;
};
