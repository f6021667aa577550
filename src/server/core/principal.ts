import type { Environment } from '../../../gen/attestation/v1/environment_pb.js';

/** A scope that every key has. It is not stored. */
export const UNIVERSAL_SCOPE = 'service:read';

/** One fixed window of a rate bucket: `limit` calls per `windowSeconds`. */
type RateWindow = { windowSeconds: number; limit: number };

/** The caller: an API key with its scopes and limits. Does not contain the key's secret. */
export type Principal = {
  apiKeyId: string;
  projectId: string;
  environment: Environment.LIVE | Environment.TEST;
  /** Without `UNIVERSAL_SCOPE`. */
  scopes: readonly string[];
  /** Windows of the submissions bucket, shortest first: second, hour, UTC day. */
  submissionWindows: readonly RateWindow[];
  /** The window of the reads bucket. */
  readWindow: RateWindow;
};
