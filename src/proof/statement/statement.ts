/**
 * The in-toto Statement v1 that an accepted submission is attested by. It carries a commitment to the metadata, never
 * the metadata: without the salt the metadata cannot be recovered or confirmed.
 */
import type { EnvironmentName } from '../../protocol/environment.js';
import { fromUtf8, utf8 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { equalBytes, hmacSha256Hex } from '../bytes/primitives.js';

/** The `_type` of every in-toto Statement v1. */
export const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';

const PREDICATE_TYPE = 'urn:attestation-service:submission:v1';

/** Length of the random salt under a commitment, in bytes. */
export const SALT_BYTES = 32;

const MAX_STATEMENT_BYTES = 16 * 1024;

/** The fields of a statement. Hashes are lower-case hex; `submittedAt` is RFC 3339 in UTC with milliseconds. */
export interface StatementFields {
  readonly artifactSha256: string;
  readonly submissionId: string;
  readonly project: string;
  readonly submittedAt: string;
  readonly environment: EnvironmentName;
  readonly schema: string;
  readonly commitment: string;
}

/** The statement's bytes: its JCS. */
export function statementBytes(fields: StatementFields): Uint8Array {
  return utf8(statementText(fields));
}

/**
 * The same as text, written out directly because this runs for every submission. Members are in the order of RFC
 * 8785, and JSON.stringify encodes a well-formed string as RFC 8785 does.
 */
export function statementText(fields: StatementFields): string {
  const quote = JSON.stringify;
  const metadata = `{"commitment":${quote(fields.commitment)},"schema":${quote(fields.schema)}}`;
  const predicate =
    `{"environment":${quote(fields.environment)},"metadata":${metadata},"project":${quote(fields.project)},` +
    `"submission_id":${quote(fields.submissionId)},"submitted_at":${quote(fields.submittedAt)}}`;
  return (
    `{"_type":"${STATEMENT_TYPE}","predicate":${predicate},"predicateType":"${PREDICATE_TYPE}",` +
    `"subject":[{"digest":{"sha256":${quote(fields.artifactSha256)}}}]}`
  );
}

/** Reads a statement. Throws FormatError unless the bytes are exactly those that {@link statementBytes} makes of its fields. */
export function parseStatement(bytes: Uint8Array): StatementFields {
  if (bytes.length > MAX_STATEMENT_BYTES) throw new FormatError('a statement is longer than 16 KiB');
  let fields: StatementFields;
  try {
    fields = fieldsOf(JSON.parse(fromUtf8(bytes)));
  } catch {
    throw new FormatError('a statement is not JSON of the expected form');
  }
  const isCanonical = equalBytes(statementBytes(fields), bytes);
  if (!isCanonical) throw new FormatError('a statement is not canonical, or has unknown members');
  return fields;
}

/** Extracts the fields without other checks: the comparison of the bytes covers the rest. */
function fieldsOf({ subject, predicate }: ReturnType<typeof JSON.parse>): StatementFields {
  const text = (value: unknown) => {
    if (typeof value !== 'string') throw new FormatError('a member of a statement is not a text');
    return value;
  };
  const environment = text(predicate.environment);
  if (environment !== 'live' && environment !== 'test') throw new FormatError('an environment is not known');
  return {
    artifactSha256: text(subject[0].digest.sha256),
    submissionId: text(predicate.submission_id),
    project: text(predicate.project),
    submittedAt: text(predicate.submitted_at),
    environment,
    schema: text(predicate.metadata.schema),
    commitment: text(predicate.metadata.commitment),
  };
}

/** The commitment to metadata, given as its JCS bytes: hex HMAC-SHA-256 under the salt. */
export function metadataCommitment(salt: Uint8Array, metadataJcs: Uint8Array): string {
  return hmacSha256Hex(salt, metadataJcs);
}
