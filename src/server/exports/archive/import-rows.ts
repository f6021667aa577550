/** The statements that put checked rows of an archive into the tables, within the transaction of the import. */
import type { Sql } from '../../database/connect.js';
import { ArchiveError } from './archive-error.js';

/**
 * Inserts submissions with their statements and stamps; `rows` is a JSON array of checked rows. Throws ArchiveError if the
 * database has a submission of one of the ids.
 */
export async function insertRows(
  tx: Sql,
  logId: number,
  ids: readonly string[],
  rows: string,
): Promise<void> {
  const known = await tx<{ id: string }[]>`
    SELECT s.id FROM unnest(${[...ids]}::text[]) wanted(id)
    JOIN LATERAL (SELECT s.id FROM submission s
                  WHERE substr(s.id, 5, 15) = substr(wanted.id, 5, 15) AND s.id = wanted.id LIMIT 1) s ON true LIMIT 1`;
  if (known[0] !== undefined)
    throw new ArchiveError(`the database has the submission ${known[0].id} already`);
  const inserted = await tx`
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata, metadata_state,
      metadata_errors, attested_schema, attested_metadata, salt, commitment, statement_version, dsse_key_id, signature, leaf_hash,
      redacted_at, build)
    SELECT ${logId}, r.log_index, r.id, r.project, r.submitted_at, decode(r.artifact_sha256, 'hex'), r.schema, r.metadata,
      r.metadata_state, r.metadata_errors, r.attested_schema, r.attested_metadata, decode(r.salt, 'hex'),
      decode(r.commitment, 'hex'), r.statement_version, k.id, decode(r.signature, 'hex'), decode(r.leaf_hash, 'hex'),
      r.redacted_at, r.build
    FROM json_to_recordset(${rows}::text::json) AS r(
      log_index bigint, id text, project text, submitted_at timestamptz, artifact_sha256 text, schema text, metadata text,
      metadata_state smallint, metadata_errors text, attested_schema text, attested_metadata text, salt text, commitment text,
      statement_version smallint, dsse_key text, signature text, leaf_hash text, redacted_at timestamptz, build text)
    JOIN dsse_key k ON k.spki = decode(r.dsse_key, 'hex')`;
  if (inserted.count !== ids.length)
    throw new Error(`${inserted.count} of ${ids.length} submissions were inserted`);
  await tx`
    INSERT INTO submission_statement (log_id, log_index, digest, text, shown, subjects, erased_at)
    SELECT ${logId}, r.log_index, decode(r.statement ->> 'digest', 'hex'), r.statement ->> 'text', r.statement ->> 'shown',
      (SELECT CASE WHEN r.statement -> 'subjects' IS NOT NULL THEN
                coalesce(array_agg(decode(u.subject, 'hex') ORDER BY u.n), '{}') END
       FROM json_array_elements_text(r.statement -> 'subjects') WITH ORDINALITY u(subject, n)),
      (r.statement ->> 'erased_at')::timestamptz
    FROM json_to_recordset(${rows}::text::json) AS r(log_index bigint, statement json) WHERE r.statement IS NOT NULL`;
  await tx`
    INSERT INTO signature_stamp (log_id, log_index, witness, response)
    SELECT ${logId}, r.log_index, u.stamp ->> 0, decode(u.stamp ->> 1, 'hex')
    FROM json_to_recordset(${rows}::text::json) AS r(log_index bigint, stamps json), json_array_elements(r.stamps) u(stamp)`;
}

/** Inserts a batch whose submissions are there, with its evidence and transitions; `record` is its checked JSON. */
export async function insertBatchRecord(
  tx: Sql,
  logId: number,
  policyVersion: number,
  record: string,
): Promise<void> {
  await tx`
    INSERT INTO batch (log_id, tree_size, id, first_index, root_hash, note, policy_version, sealed_at, deadline_at, registered_at,
                       status, witnessed_at)
    SELECT ${logId}, r.tree_size, r.id, r.first_index, decode(r.root_hash, 'hex'), r.note, ${policyVersion}, r.sealed_at,
           r.deadline_at, r.registered_at, r.status, r.witnessed_at
    FROM json_to_record(${record}::text::json) AS r(
      tree_size bigint, id text, first_index bigint, root_hash text, note text, sealed_at timestamptz, deadline_at timestamptz,
      registered_at timestamptz, status smallint, witnessed_at timestamptz)`;
  await tx`
    INSERT INTO batch_content (log_id, tree_size, project_id, schema, submissions, first_index, last_index)
    SELECT b.log_id, b.tree_size, s.project_id, s.schema, count(*), min(s.log_index), max(s.log_index)
    FROM json_to_record(${record}::text::json) AS r(tree_size bigint)
    JOIN batch b ON b.log_id = ${logId} AND b.tree_size = r.tree_size
    JOIN named_submission s ON s.log_id = b.log_id AND s.log_index >= b.first_index AND s.log_index < b.tree_size
    GROUP BY b.log_id, b.tree_size, s.project_id, s.schema`;
  await tx`
    INSERT INTO evidence (log_id, witness, tree_size, kind, evidence, detail, landed_at)
    SELECT ${logId}, e.witness, e.tree_size, e.kind, decode(e.evidence, 'hex'), coalesce(e.detail, '{}'), e.landed_at
    FROM json_to_record(${record}::text::json) AS r(evidence json),
      json_to_recordset(r.evidence) AS e(witness text, tree_size bigint, kind smallint, evidence text, detail jsonb,
                                         landed_at timestamptz)`;
  // Its events were sent by the database that it comes from.
  await tx`
    INSERT INTO batch_transition (log_id, tree_size, status, at, notified, landed, missing)
    SELECT ${logId}, r.tree_size, n.status, n.at, true, n.landed, n.missing
    FROM json_to_record(${record}::text::json) AS r(tree_size bigint, transitions json),
      json_to_recordset(r.transitions) AS n(status smallint, at timestamptz, landed text[], missing text[])`;
}

/** Records how far each witness has attested to a log, so that none is asked again for what it has attested to. */
export async function insertWitnessStates(tx: Sql, logId: number, treeSize: number): Promise<void> {
  await tx`
    INSERT INTO witness_state (log_id, witness, covers_tree_size, requested_tree_size)
    SELECT log_id, witness, max(tree_size), ${treeSize}::bigint FROM evidence WHERE log_id = ${logId} GROUP BY log_id, witness
    ON CONFLICT (log_id, witness) DO UPDATE SET covers_tree_size = excluded.covers_tree_size,
                                                requested_tree_size = excluded.requested_tree_size`;
  await tx`UPDATE witness_state SET requested_tree_size = ${treeSize} WHERE log_id = ${logId}`;
}
