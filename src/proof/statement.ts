/**
 * The in-toto Statement v1 that an accepted submission is attested by. It carries a commitment to the metadata, never
 * the metadata: once the salt is forgotten, nothing that remains says what the metadata was.
 */
import { toHex, utf8 } from './encoding.js';
import { hmacSha256 } from './primitives.js';

/** Version of the statement's form; a stored submission says which one its statement is rebuilt by. */
export const STATEMENT_VERSION = 1;

export const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
export const PREDICATE_TYPE = 'urn:attestation-service:submission:v1';

/** Length of the random salt under a commitment, in bytes. */
export const SALT_BYTES = 32;

/** What a statement states. Hashes are lower-case hex; `submittedAt` is RFC 3339 in UTC with milliseconds. */
export interface StatementFields {
  readonly artifactSha256: string;
  readonly submissionId: string;
  readonly project: string;
  readonly submittedAt: string;
  readonly environment: 'live' | 'test';
  readonly schema: string;
  readonly commitment: string;
}

/**
 * The statement's bytes: its JCS, written out directly because this runs for every submission. Members stand in the
 * order RFC 8785 asks for, and JSON.stringify spells a well-formed string as RFC 8785 does.
 */
export function statementBytes(fields: StatementFields): Uint8Array {
  const quote = JSON.stringify;
  const metadata = `{"commitment":${quote(fields.commitment)},"schema":${quote(fields.schema)}}`;
  const predicate =
    `{"environment":${quote(fields.environment)},"metadata":${metadata},"project":${quote(fields.project)},` +
    `"submission_id":${quote(fields.submissionId)},"submitted_at":${quote(fields.submittedAt)}}`;
  return utf8(
    `{"_type":"${STATEMENT_TYPE}","predicate":${predicate},"predicateType":"${PREDICATE_TYPE}",` +
      `"subject":[{"digest":{"sha256":${quote(fields.artifactSha256)}}}]}`,
  );
}

/** The commitment to metadata, given as its JCS bytes: hex HMAC-SHA-256 under the salt. */
export function metadataCommitment(salt: Uint8Array, metadataJcs: Uint8Array): string {
  return toHex(hmacSha256(salt, metadataJcs));
}
