/** Every way in which a copy of the database is broken on purpose: the judge has to notice each. */

/** Statements that break the copy; they have to change something. */
export type TableSabotage = { name: string; statement: string };

/** A row in the middle of the first log; what is done to it is not at an edge, where other checks would see it too. */
const ROW = `(SELECT id FROM submission WHERE log_id = 1 ORDER BY log_index
              OFFSET (SELECT count(*) / 2 FROM submission WHERE log_id = 1) LIMIT 1)`;
const BATCH = `(SELECT tree_size FROM batch WHERE log_id = 1 ORDER BY tree_size
                OFFSET (SELECT count(*) / 2 FROM batch WHERE log_id = 1) LIMIT 1)`;

export const TABLE_SABOTAGES: readonly TableSabotage[] = [
  { name: 'a row is deleted', statement: `DELETE FROM submission WHERE id = ${ROW}` },
  {
    name: 'the last row is deleted',
    statement: `DELETE FROM submission WHERE (log_id, log_index) = (SELECT log_id, max(log_index) FROM submission
                WHERE log_id = 1 GROUP BY log_id)`,
  },
  {
    name: 'two rows have changed places',
    statement: `UPDATE submission s SET leaf_hash = o.leaf_hash, artifact_sha256 = o.artifact_sha256, id = s.id
                FROM submission o WHERE s.log_id = 1 AND o.log_id = 1 AND s.log_index + o.log_index = 1`,
  },
  {
    name: 'a row has another artifact',
    statement: `UPDATE submission SET artifact_sha256 = '' WHERE id = ${ROW}`,
  },
  { name: 'a row has another leaf', statement: `UPDATE submission SET leaf_hash = '' WHERE id = ${ROW}` },
  {
    name: 'a row is in another project',
    statement: `UPDATE submission s SET project_id = p.id, schema = n.schema, project_number = NULL, schema_number = NULL
                FROM named_submission n, project p WHERE s.id = ${ROW} AND n.id = s.id AND p.id <> n.project_id`,
  },
  {
    name: 'a request is stored twice',
    statement: `INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema,
                                        metadata_state, commitment, dsse_key_id, signature, leaf_hash)
                SELECT s.log_id, (SELECT max(log_index) + 1 FROM submission WHERE log_id = 1), 'sub_copy', s.project_id,
                       s.submitted_at, s.artifact_sha256, s.schema, 1, s.commitment, s.dsse_key_id, s.signature, s.leaf_hash
                FROM named_submission s JOIN idempotency_key k ON k.resource_id = s.id WHERE s.log_id = 1 LIMIT 1`,
  },
  {
    name: 'a key stands for nothing',
    statement: `UPDATE idempotency_key SET resource_id = 'sub_nothing'
                WHERE key = (SELECT min(key) FROM idempotency_key WHERE resource_id LIKE 'sub\\_%')`,
  },
  {
    name: 'a key stands for another submission',
    statement: `UPDATE idempotency_key SET resource_id = (SELECT max(resource_id) FROM idempotency_key WHERE resource_id LIKE 'sub\\_%')
                WHERE resource_id = (SELECT min(resource_id) FROM idempotency_key WHERE resource_id LIKE 'sub\\_%')`,
  },
  {
    name: 'a batch has another root',
    statement: `UPDATE batch SET root_hash = '' WHERE log_id = 1 AND tree_size = ${BATCH}`,
  },
  { name: 'a batch is missing', statement: `DELETE FROM batch WHERE log_id = 1 AND tree_size = ${BATCH}` },
  {
    name: 'a batch is not published',
    statement: `UPDATE batch SET registered_at = NULL WHERE log_id = 1 AND tree_size = ${BATCH}`,
  },
  {
    name: 'a batch is not settled',
    statement: `UPDATE batch SET status = 1 WHERE log_id = 1 AND tree_size = ${BATCH}`,
  },
  {
    name: 'a batch has become witnessed without a transition',
    statement: `DELETE FROM batch_transition WHERE log_id = 1 AND tree_size = ${BATCH}`,
  },
  {
    name: 'what was redacted is back',
    statement: `UPDATE submission SET metadata = '{}' WHERE redacted_at IS NOT NULL`,
  },
  {
    name: 'a salt outlived its redaction',
    statement: `UPDATE submission SET salt = '\\x00' WHERE redacted_at IS NOT NULL`,
  },
  {
    name: 'a correction is undone',
    statement: `UPDATE submission SET metadata = attested_metadata WHERE attested_metadata IS NOT NULL`,
  },
];
