-- Submissions whose signed statement is more than their row: it is public, or names the artifact or an identity.
--
-- Processes of the version before write and read submissions without any. What they make of one that a newer process
-- wrote (bundle, line of an export, entry of the log) has another leaf and verifies nowhere.

-- Better to fail and be run again than to keep every process waiting behind a long read of the table.
SET LOCAL lock_timeout = '5s';

-- `submission.statement_version` says how the signed statement is known. 1: private, made of the row. 2: private, 3: public;
-- both are in `submission_statement`. A submission with a public one has no salt and an empty commitment.

-- Signed statements. `digest`: SHA-256 of what was signed (DSSE PAE), of which the leaf is made. `text`: JCS; null once
-- erased. `shown`: JSON of what lists show of it, and `subjects`, SHA-256 of those beside the artifact, by which look-ups
-- find it; both null once redacted.
CREATE TABLE submission_statement (
  log_id integer NOT NULL,
  log_index bigint NOT NULL,
  digest bytea NOT NULL,
  text text,
  shown text,
  subjects bytea[],
  erased_at timestamptz,
  PRIMARY KEY (log_id, log_index)
);
-- Statistics would contain what was erased. Hashes do not compress.
ALTER TABLE submission_statement
  ALTER COLUMN text SET STATISTICS 0, ALTER COLUMN shown SET STATISTICS 0, ALTER COLUMN subjects SET STATISTICS 0,
  ALTER COLUMN subjects SET STORAGE EXTERNAL;

CREATE FUNCTION find_statement(p_log_id integer, p_log_index bigint)
RETURNS TABLE (digest bytea, text text, shown text, erased_at timestamptz)
LANGUAGE plpgsql STABLE ROWS 1 SET enable_seqscan = off AS $$
BEGIN
  RETURN QUERY
    SELECT s.digest, s.text, s.shown, s.erased_at FROM submission_statement s
    WHERE s.log_id = p_log_id AND s.log_index = p_log_index;
END $$;
COMMENT ON FUNCTION find_statement IS
'Returns the stored statement of a leaf. A function, so that no plan of the time when there were few reads all of them.
Locks: none.';

CREATE FUNCTION store_statements(
  p_log_id integer, p_outcome submission_outcome[], p_log_index bigint[],
  p_statement_version smallint[], p_statement text, p_digest bytea[], p_shown text[], p_subjects text[])
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  IF p_statement IS NULL THEN
    RETURN;
  END IF;
  INSERT INTO submission_statement (log_id, log_index, digest, text, shown, subjects)
  SELECT p_log_id, u.log_index, u.digest, u.text, u.shown, u.subjects::bytea[]
  FROM unnest(p_outcome, p_log_index, p_statement_version, p_digest, string_to_array(p_statement, E'\n'), p_shown,
              p_subjects)
    AS u(outcome, log_index, statement_version, digest, text, shown, subjects)
  WHERE u.outcome IS NULL AND u.statement_version > 1;
END $$;
COMMENT ON FUNCTION store_statements IS
'Step of append_submissions: stores the statements of the rows without an outcome that are more than their row, if p_statement is not null.
Locks: the rows that it writes.';

DROP FUNCTION append_submissions;
CREATE FUNCTION append_submissions(
  p_log_id integer, p_is_retry boolean, p_retention_ms bigint,
  p_api_key_id text[], p_project_id text[], p_limit_second bigint[], p_limit_hour bigint[], p_limit_day bigint[],
  p_key integer[], p_id text[], p_submitted_ms bigint[], p_schema text[], p_dsse_key_id integer[], p_bytes bytea[],
  p_metadata text, p_metadata_errors text[], p_idempotency_key text[], p_request_hash bytea[],
  p_build text[] DEFAULT NULL, p_statement_version smallint[] DEFAULT NULL, p_statement text DEFAULT NULL,
  p_digest bytea[] DEFAULT NULL, p_shown text[] DEFAULT NULL, p_subjects text[] DEFAULT NULL,
  OUT first_index bigint, OUT use json, OUT outcome json, OUT resource_id json, OUT log_index json
) LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  v_outcome submission_outcome[] := array_fill(NULL::submission_outcome, ARRAY[cardinality(p_id)]);
  v_log_index bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_id)]);
  v_resource_id text[] := p_id;
  v_metadata CONSTANT text[] := string_to_array(p_metadata, E'\n');
  v_use window_use[];
  v_holder text[];
  v_first integer;
BEGIN
  IF cardinality(v_metadata) <> cardinality(p_id) THEN
    RAISE EXCEPTION '% texts of metadata for % submissions', cardinality(v_metadata), cardinality(p_id);
  END IF;
  IF p_is_retry THEN
    SELECT * INTO v_outcome, v_log_index FROM find_stored_submissions(p_id, v_outcome, v_log_index);
  END IF;
  IF p_idempotency_key IS NOT NULL THEN
    SELECT array_agg(p_api_key_id[u.key] ORDER BY u.n) INTO v_holder FROM unnest(p_key) WITH ORDINALITY u(key, n);
    SELECT * INTO v_outcome, v_resource_id FROM claim_idempotency_keys(
      v_holder, p_idempotency_key, p_request_hash, p_retention_ms, v_outcome, v_resource_id);
  END IF;
  IF v_outcome && ARRAY['stored', 'replayed']::submission_outcome[] THEN
    PERFORM confirm_durable();
  END IF;
  SELECT * INTO v_outcome, v_use
    FROM take_key_tokens(p_key, p_api_key_id, p_limit_second, p_limit_hour, p_limit_day, v_outcome);
  SELECT * INTO v_outcome, v_use FROM take_project_tokens(
    p_key, p_api_key_id, p_project_id, p_limit_second, p_limit_hour, p_limit_day, v_outcome, v_use);
  v_first := array_position(v_outcome, NULL);
  IF v_first IS NOT NULL THEN
    v_log_index := allocate_log_indexes(p_log_id, v_outcome, v_log_index);
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, schema, dsse_key_id, metadata, metadata_state,
      metadata_errors, artifact_sha256, salt, commitment, leaf_hash, signature, build, statement_version)
    SELECT p_log_id, u.log_index, u.id, p_project_id[u.key], timestamptz 'epoch' + u.submitted_ms * interval '1 millisecond',
           u.schema, u.dsse_key_id, u.metadata, CASE WHEN u.metadata_errors IS NULL THEN 1 ELSE 2 END, -- MetadataState
           u.metadata_errors, substring(u.bytes FROM 1 FOR 32),
           CASE WHEN u.statement_version IS DISTINCT FROM 3 THEN substring(u.bytes FROM 33 FOR 32) END,
           CASE WHEN u.statement_version = 3 THEN '' ELSE substring(u.bytes FROM 65 FOR 32) END,
           substring(u.bytes FROM 97 FOR 32), substring(u.bytes FROM 129), u.build, coalesce(u.statement_version, 1)
    FROM unnest(v_outcome, v_log_index, p_key, p_id, p_submitted_ms, p_schema, p_dsse_key_id, p_bytes, v_metadata,
                p_metadata_errors, p_build, p_statement_version)
      AS u(outcome, log_index, key, id, submitted_ms, schema, dsse_key_id, bytes, metadata, metadata_errors, build,
           statement_version) WHERE u.outcome IS NULL;
    PERFORM store_statements(p_log_id, v_outcome, v_log_index, p_statement_version, p_statement, p_digest, p_shown, p_subjects);
    IF p_idempotency_key IS NOT NULL THEN
      PERFORM record_idempotency_keys(v_holder, p_idempotency_key, p_request_hash, p_id, v_outcome);
    END IF;
    first_index := v_log_index[v_first];
  END IF;
  use := to_json(v_use);
  IF cardinality(array_remove(v_outcome, NULL)) > 0 THEN
    SELECT to_json(v_outcome), to_json(v_resource_id), to_json(v_log_index) INTO outcome, resource_id, log_index;
  END IF;
END $$;
COMMENT ON FUNCTION append_submissions IS
'Appends submissions to a log. p_api_key_id, p_project_id and p_limit_* have an element per API key, the other arrays one per submission; p_key is the place of its API key. A project with a ceiling has an element after those of the API keys, with its id in p_api_key_id and p_project_id and the ceiling in p_limit_*. p_bytes: artifact_sha256, salt, commitment and leaf_hash, 32 bytes each, then the signature. p_metadata: the JCS texts, one per line. p_metadata_errors, p_idempotency_key, p_request_hash and p_build are null if no submission has any; a submission with errors is invalid. So are p_statement_version, whose elements are null where it is 1, p_statement, one statement per line and an empty line where it is not stored, p_digest, p_shown and p_subjects, whose elements are arrays of hashes as text. An idempotency key occurs at most once in a call. Times are Unix milliseconds.
Each step decides the outcome of some submissions; those that no step has decided are stored, in order, from first_index on. outcome, resource_id and log_index are null if all are stored, else they have an element per submission, and a null outcome means stored. use has the windows of each API key and project, null if none of its submissions was counted.
p_is_retry: an earlier call with the same ids may have committed; its rows are returned as stored. The commit of a call that found rows or keys waits as that of one that stored some (confirm_durable). Raises ATFRZ if the log is frozen, and stores nothing if it raises.
Locks: of the idempotency keys (never waited for), then of the rate windows of the API keys and after them of the projects, both in ascending order, then the log''s, last because it is contended most. In this order two calls cannot deadlock. All are held until the transaction ends.';

CREATE OR REPLACE FUNCTION artifact_rows(
  p_run_id bigint, p_log_id integer, p_first bigint, p_end bigint, p_project_id text, p_artifact_sha256 bytea,
  p_limit integer
) RETURNS TABLE (log_index bigint, is_artifact boolean, schema text, submitted_at timestamptz)
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
BEGIN
  IF p_run_id IS NULL THEN
    RETURN QUERY
      SELECT s.log_index,
             s.artifact_sha256 = p_artifact_sha256 OR s.statement_version = 3 AND coalesce((
               SELECT p_artifact_sha256 = ANY (t.subjects) FROM submission_statement t
               WHERE t.log_id = s.log_id AND t.log_index = s.log_index LIMIT 1), false),
             s.schema, s.submitted_at
      FROM submission s
      WHERE (s.project_id, s.log_id, s.log_index) >= (p_project_id, p_log_id, p_first)
        AND (s.project_id, s.log_id, s.log_index) <= (p_project_id, p_log_id, p_end - 1)
      ORDER BY s.project_id DESC, s.log_id DESC, s.log_index DESC LIMIT p_limit;
  ELSE
    RETURN QUERY
      SELECT l.leaf,
             s.project_id = p_project_id AND (
               s.artifact_sha256 = p_artifact_sha256 OR s.statement_version = 3 AND coalesce((
                 SELECT p_artifact_sha256 = ANY (t.subjects) FROM submission_statement t
                 WHERE t.log_id = s.log_id AND t.log_index = s.log_index LIMIT 1), false)),
             s.schema, s.submitted_at
      FROM artifact_run_leaves(p_run_id, artifact_entry(p_artifact_sha256, p_project_id, p_first),
                               artifact_entry(p_artifact_sha256, p_project_id, p_end - 1), p_limit) AS l(leaf)
      CROSS JOIN LATERAL (
        SELECT * FROM submission s WHERE s.log_id = p_log_id AND s.log_index = l.leaf LIMIT 1
      ) s
      ORDER BY l.leaf DESC;
  END IF;
END $$;
COMMENT ON FUNCTION artifact_rows IS
'Returns the newest p_limit leaves of a part of a log that may be of the project and the artifact, newest first: those with such an entry in the run, or, without a run, all leaves of the project.
Locks: none.';

CREATE OR REPLACE FUNCTION artifact_projects(p_artifact_sha256 bytea, p_most integer) RETURNS TABLE (project_key bytea)
LANGUAGE plpgsql STABLE ROWS 10 SET enable_seqscan = off AS $$
DECLARE
  v_run record;
  v_prefix CONSTANT bytea := substr(p_artifact_sha256, 1, 7);
  v_key bytea;
  v_number bigint;
BEGIN
  FOR v_run IN SELECT r.id, r.log_id FROM artifact_run r WHERE r.is_current LOOP
    v_number := (1::bigint << 32) - 1;
    WHILE v_number >= 0 LOOP
      SELECT substr(sha256(s.project_id::bytea), 1, 4) INTO v_key
      FROM artifact_run_leaves(v_run.id, v_prefix || '\x000000000000000000'::bytea,
                               v_prefix || substr(int8send(v_number), 5) || '\xffffffffff'::bytea, 1) AS l(leaf)
      CROSS JOIN LATERAL (
        SELECT * FROM submission s WHERE s.log_id = v_run.log_id AND s.log_index = l.leaf LIMIT 1
      ) s;
      EXIT WHEN NOT FOUND;
      RETURN QUERY SELECT v_key;
      v_number := ('x' || encode(v_key, 'hex'))::bit(32)::bigint - 1;
    END LOOP;
  END LOOP;
  RETURN QUERY
    SELECT DISTINCT substr(sha256(s.project_id::bytea), 1, 4) FROM log l
    CROSS JOIN LATERAL (
      SELECT coalesce((SELECT r.end_index FROM artifact_run r WHERE r.log_id = l.id AND r.is_current
                       ORDER BY r.end_index DESC LIMIT 1), 0) AS size
    ) indexed
    CROSS JOIN LATERAL (
      SELECT s.project_id, s.log_id, s.log_index, s.artifact_sha256, s.statement_version FROM submission s
      WHERE s.log_id = l.id AND s.log_index >= indexed.size
      ORDER BY s.log_index DESC LIMIT p_most
    ) s
    WHERE s.artifact_sha256 = p_artifact_sha256 OR s.statement_version = 3 AND coalesce((
      SELECT p_artifact_sha256 = ANY (t.subjects) FROM submission_statement t
      WHERE t.log_id = s.log_id AND t.log_index = s.log_index LIMIT 1), false);
END $$;
COMMENT ON FUNCTION artifact_projects IS
'Returns the keys in index entries of the projects that have attested an artifact, some of them repeatedly. Of the leaves of each log that no run has, looks at the newest p_most.
Locks: none.';
