/**
 * The in-toto Statement v1 that an accepted submission is attested by. A private one, the default, carries a commitment to
 * the metadata, never the metadata: without the salt the metadata cannot be recovered or confirmed. A public one is in
 * public-statement.ts.
 */

import { parseIdentity } from '../../protocol/identity.js';
import { fromUtf8, utf8 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { jcs } from '../bytes/jcs.js';
import { equalBytes, hmacSha256Hex } from '../bytes/primitives.js';
import { type PublicStatement, parsePublicStatement } from './public-statement.js';
import { STATEMENT_TYPE, type StatedSubmission } from './stated-submission.js';

const PREDICATE_TYPE = 'urn:attestation-service:submission:v1';

/** Length of the random salt under a commitment, in bytes. */
export const SALT_BYTES = 32;

const MAX_STATEMENT_BYTES = 16 * 1024;

/** Either form. A public one has a `predicateType`. */
export type Statement = StatementFields | PublicStatement;

/** The fields of a private statement: of the submission, the schema of its metadata and the commitment to it, in hex. */
export interface StatementFields extends StatedSubmission {
  readonly schema: string;
  readonly commitment: string;
}

/** Whether a statement is public. */
export function isPublic(statement: Statement): statement is PublicStatement {
  return 'predicateType' in statement;
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
  const { artifactName, identity } = fields;
  const metadata = `{"commitment":${quote(fields.commitment)},"schema":${quote(fields.schema)}}`;
  const ofIdentity = identity === undefined ? '' : `"identity":${jcs(identity)},`;
  const predicate =
    `{"environment":${quote(fields.environment)},${ofIdentity}"metadata":${metadata},` +
    `"project":${quote(fields.project)},"submission_id":${quote(fields.submissionId)},` +
    `"submitted_at":${quote(fields.submittedAt)}}`;
  const name = artifactName === undefined ? '' : `,"name":${quote(artifactName)}`;
  return (
    `{"_type":"${STATEMENT_TYPE}","predicate":${predicate},"predicateType":"${PREDICATE_TYPE}",` +
    `"subject":[{"digest":{"sha256":${quote(fields.artifactSha256)}}${name}}]}`
  );
}

/**
 * Reads a statement of either form. Throws FormatError unless the bytes are exactly those that {@link statementBytes}, or
 * `publicStatementText`, makes of its fields.
 */
export function parseStatement(bytes: Uint8Array): Statement {
  const json = parseJson(bytes);
  const isOther = typeof json?.predicateType === 'string' && json.predicateType !== PREDICATE_TYPE;
  if (isOther) return parsePublicStatement(json, bytes);
  if (bytes.length > MAX_STATEMENT_BYTES) throw new FormatError('a statement is longer than 16 KiB');
  const fields = fieldsOf(json);
  const isCanonical = equalBytes(statementBytes(fields), bytes);
  if (!isCanonical) throw new FormatError('a statement is not canonical, or has unknown members');
  return fields;
}

function parseJson(bytes: Uint8Array): ReturnType<typeof JSON.parse> {
  try {
    return JSON.parse(fromUtf8(bytes));
  } catch {
    throw new FormatError('a statement is not JSON');
  }
}

/** Extracts the fields without other checks: the comparison of the bytes covers the rest. */
function fieldsOf(json: ReturnType<typeof JSON.parse>): StatementFields {
  const text = (value: unknown) => {
    if (typeof value !== 'string') throw new FormatError('a member of a statement is not a text');
    return value;
  };
  const predicate = json?.predicate;
  const subject = json?.subject?.[0];
  const environment = predicate?.environment;
  if (environment !== 'live' && environment !== 'test') throw new FormatError('an environment is not known');
  const identity = parseIdentity(predicate.identity);
  return {
    artifactSha256: text(subject?.digest?.sha256),
    ...(typeof subject.name === 'string' && { artifactName: subject.name }),
    submissionId: text(predicate.submission_id),
    project: text(predicate.project),
    submittedAt: text(predicate.submitted_at),
    environment,
    ...(identity && { identity }),
    schema: text(predicate.metadata?.schema),
    commitment: text(predicate.metadata?.commitment),
  };
}

/** The commitment to metadata, given as its JCS bytes: hex HMAC-SHA-256 under the salt. */
export function metadataCommitment(salt: Uint8Array, metadataJcs: Uint8Array): string {
  return hmacSha256Hex(salt, metadataJcs);
}
