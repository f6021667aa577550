import { MetadataState } from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Sql } from '../../database/connect.js';
import { eraseStatementText, redactStatement } from '../statements/statement-store.js';
import { isOfId } from './by-id.js';

/** The state of a submission's metadata: a proto MetadataState number, its current schema, and its `StatementVersion`. */
export type MetadataStatus = { state: number; schema: string; statementVersion: number };

const { VALID, REDACTED } = MetadataState;

/**
 * Reads the metadata state of the owner's submission and locks it until the transaction ends. Returns undefined if the
 * owner has no submission of this id.
 *
 * @param owner a project in one environment, a proto Environment number
 */
export async function lockMetadata(
  tx: Sql,
  id: string,
  { projectId, environment }: { projectId: string; environment: number },
): Promise<MetadataStatus | undefined> {
  const rows = await tx<MetadataStatus[]>`
    SELECT s.metadata_state AS state, coalesce(s.schema, n.schema) AS schema, s.statement_version AS "statementVersion"
    FROM submission s JOIN log l ON l.id = s.log_id AND l.environment = ${environment}
    LEFT JOIN submission_name n ON n.number = s.schema_number
    WHERE ${isOfId(tx, id)} AND coalesce(s.project_id, n.project_id) = ${projectId} FOR NO KEY UPDATE OF s`;
  return rows[0];
}

/**
 * Replaces the indexed metadata by valid metadata, and keeps the attested. The row has names from then on. The caller holds the
 * lock.
 */
export async function correctMetadata(
  tx: Sql,
  id: string,
  { schema, canonical }: { schema: string; canonical: string },
): Promise<void> {
  await tx`
    UPDATE submission s
    SET project_id = n.project_id, schema = ${schema}, project_number = NULL, schema_number = NULL,
        metadata = ${canonical}, metadata_state = ${VALID}, metadata_errors = NULL,
        attested_schema = n.schema, attested_metadata = s.metadata
    FROM named_submission n WHERE ${isOfId(tx, id)} AND n.log_id = s.log_id AND n.log_index = s.log_index`;
}

/**
 * Erases all metadata of the row, the salt, the build, whose name may be a person's branch, and what the API shows and finds
 * of a stored statement. The schema names stay: lists and the statement need them. The time of an earlier redaction stays.
 * The caller holds the lock.
 */
export async function redactMetadata(tx: Sql, id: string): Promise<void> {
  await tx`
    UPDATE submission s
    SET metadata = NULL, metadata_state = ${REDACTED}, metadata_errors = NULL, attested_metadata = NULL, salt = NULL,
        build = NULL, redacted_at = coalesce(redacted_at, clock_timestamp())
    WHERE ${isOfId(tx, id)}`;
  await redactStatement(tx, id);
}

/** Erases a stored statement and, with it, what {@link redactMetadata} does. The caller holds the lock. */
export async function eraseStatement(tx: Sql, id: string): Promise<void> {
  await eraseStatementText(tx, id);
  await redactMetadata(tx, id);
}
