import type { EnvironmentName } from '../../protocol/environment.js';
import type { Identity } from '../../protocol/identity.js';

/** The `_type` of every in-toto Statement v1. */
export const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';

/**
 * What statements of both forms say of their submission. The hash is lower-case hex; `submittedAt` is RFC 3339 in UTC
 * with milliseconds; `artifactName` is the submitter's name for the artifact.
 */
export interface StatedSubmission {
  readonly artifactSha256: string;
  readonly artifactName?: string | undefined;
  readonly submissionId: string;
  readonly project: string;
  readonly submittedAt: string;
  readonly environment: EnvironmentName;
  /** Who submitted, if it was not a stored API key. */
  readonly identity?: Identity | undefined;
}
