import type { Environment } from '../gen/attestation/v1/environment_pb.js';

/** One fixed window of a rate bucket: `limit` calls per `windowSeconds`. */
export type RateWindow = { windowSeconds: number; limit: number };

/** Who is calling: an API key and what it may do. Never holds the key's secret. */
export type Principal = {
  apiKeyId: string;
  projectId: string;
  environment: Environment.LIVE | Environment.TEST;
  scopes: readonly string[];
  /** Windows of the submissions bucket, shortest first: second, hour, UTC day. */
  submissionWindows: readonly RateWindow[];
  /** The window of the reads bucket. */
  readWindow: RateWindow;
};
