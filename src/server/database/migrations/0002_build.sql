-- Submissions name the build that they are part of.
--
-- Processes of the version before call both functions without the new parameter, and store and show no build.

-- Better to fail and be run again than to keep every process waiting behind a long read of the table.
SET LOCAL lock_timeout = '5s';

-- A label of the caller's; erased by redaction. Not in statistics, in which an erased one would remain.
ALTER TABLE submission ADD COLUMN IF NOT EXISTS build text COLLATE "C";
ALTER TABLE submission ALTER COLUMN build SET STATISTICS 0;

DROP FUNCTION append_submissions;
CREATE FUNCTION append_submissions(
  p_log_id integer, p_is_retry boolean, p_retention_ms bigint,
  p_api_key_id text[], p_project_id text[], p_limit_second bigint[], p_limit_hour bigint[], p_limit_day bigint[],
  p_key integer[], p_id text[], p_submitted_ms bigint[], p_schema text[], p_dsse_key_id integer[], p_bytes bytea[],
  p_metadata text, p_metadata_errors text[], p_idempotency_key text[], p_request_hash bytea[],
  p_build text[] DEFAULT NULL,
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
  SELECT * INTO v_outcome, v_use FROM take_key_tokens(
    p_key, p_api_key_id, p_limit_second, p_limit_hour, p_limit_day, v_outcome);
  SELECT * INTO v_outcome, v_use FROM take_project_tokens(
    p_key, p_api_key_id, p_project_id, p_limit_second, p_limit_hour, p_limit_day, v_outcome, v_use);
  v_first := array_position(v_outcome, NULL);
  IF v_first IS NOT NULL THEN
    v_log_index := allocate_log_indexes(p_log_id, v_outcome, v_log_index);
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, schema, dsse_key_id, metadata,
                            metadata_state, metadata_errors, artifact_sha256, salt, commitment, leaf_hash, signature,
                            build)
    SELECT p_log_id, u.log_index, u.id, p_project_id[u.key],
           timestamptz 'epoch' + u.submitted_ms * interval '1 millisecond', u.schema, u.dsse_key_id, u.metadata,
           CASE WHEN u.metadata_errors IS NULL THEN 1 ELSE 2 END, -- METADATA_STATE_VALID, METADATA_STATE_INVALID
           u.metadata_errors, substring(u.bytes FROM 1 FOR 32), substring(u.bytes FROM 33 FOR 32),
           substring(u.bytes FROM 65 FOR 32), substring(u.bytes FROM 97 FOR 32), substring(u.bytes FROM 129), u.build
    FROM unnest(v_outcome, v_log_index, p_key, p_id, p_submitted_ms, p_schema, p_dsse_key_id, p_bytes,
                v_metadata, p_metadata_errors, p_build)
      AS u(outcome, log_index, key, id, submitted_ms, schema, dsse_key_id, bytes, metadata, metadata_errors, build)
    WHERE u.outcome IS NULL;
    IF p_idempotency_key IS NOT NULL THEN
      PERFORM record_idempotency_keys(v_holder, p_idempotency_key, p_request_hash, p_id, v_outcome);
    END IF;
    first_index := v_log_index[v_first];
  END IF;
  use := to_json(v_use);
  IF cardinality(array_remove(v_outcome, NULL)) > 0 THEN
    outcome := to_json(v_outcome);
    resource_id := to_json(v_resource_id);
    log_index := to_json(v_log_index);
  END IF;
END $$;
COMMENT ON FUNCTION append_submissions IS
'Appends submissions to a log. p_api_key_id, p_project_id and p_limit_* have an element per API key, the other arrays one per submission; p_key is the place of its API key. A project with a ceiling has an element after those of the API keys, with its id in p_api_key_id and p_project_id and the ceiling in p_limit_*. p_bytes: artifact_sha256, salt, commitment and leaf_hash, 32 bytes each, then the signature. p_metadata: the JCS texts, one per line. p_metadata_errors, p_idempotency_key, p_request_hash and p_build are null if no submission has any; a submission with errors is invalid. An idempotency key occurs at most once in a call. Times are Unix milliseconds.
Each step decides the outcome of some submissions; those that no step has decided are stored, in order, from first_index on. outcome, resource_id and log_index are null if all are stored, else they have an element per submission, and a null outcome means stored. use has the windows of each API key and project, null if none of its submissions was counted.
p_is_retry: an earlier call with the same ids may have committed; its rows are returned as stored. The commit of a call that found rows or keys waits as that of one that stored some (confirm_durable). Raises ATFRZ if the log is frozen, and stores nothing if it raises.
Locks: of the idempotency keys (never waited for), then of the rate windows of the API keys and after them of the projects, both in ascending order, then the log''s, last because it is contended most. In this order two calls cannot deadlock. All are held until the transaction ends.';

DROP FUNCTION find_artifact;
CREATE FUNCTION find_artifact(
  p_project_id text, p_artifact_sha256 bytea, p_schema text, p_status smallint,
  p_after timestamptz, p_before timestamptz, p_log_ids integer[], p_ends bigint[], p_limit integer, p_most integer,
  p_build text DEFAULT NULL
) RETURNS TABLE (log_id integer, log_index bigint, is_match boolean)
LANGUAGE plpgsql STABLE ROWS 50 SET enable_seqscan = off AS $$
DECLARE
  v_left integer := p_limit;
  v_most integer := p_most;
  v_step integer;
  v_seen integer;
  v_end bigint;
  v_part record;
  v_row record;
BEGIN
  FOR v_part IN
    SELECT l.log_id, p.run_id, p.first_index, p.end_index
    FROM unnest(p_log_ids, p_ends) AS l(log_id, end_index)
    CROSS JOIN LATERAL leaf_stretches(l.log_id, p_status, p_after, p_before, least(l.end_index, 1::bigint << 40)) r
    CROSS JOIN LATERAL artifact_parts(l.log_id, r.first_index, r.end_index) p
    ORDER BY l.log_id DESC, p.end_index DESC
  LOOP
    v_end := v_part.end_index;
    v_step := p_limit;
    LOOP
      v_step := least(v_step, v_most);
      v_seen := 0;
      FOR v_row IN SELECT * FROM artifact_rows(v_part.run_id, v_part.log_id, v_part.first_index, v_end,
                                               p_project_id, p_artifact_sha256, v_step) LOOP
        v_seen := v_seen + 1;
        v_end := v_row.log_index;
        IF v_row.is_artifact AND v_row.schema = coalesce(p_schema, v_row.schema)
           AND v_row.submitted_at > coalesce(p_after, '-infinity')
           AND v_row.submitted_at < coalesce(p_before, 'infinity')
           AND (p_build IS NULL OR p_build = (
             SELECT s.build FROM submission s WHERE s.log_id = v_part.log_id AND s.log_index = v_end LIMIT 1)) THEN
          RETURN QUERY SELECT v_part.log_id, v_end, true;
          v_left := v_left - 1;
          IF v_left = 0 THEN
            RETURN;
          END IF;
        END IF;
      END LOOP;
      v_most := v_most - v_seen;
      IF v_most = 0 THEN
        RETURN QUERY SELECT v_part.log_id, v_end, false;
        RETURN;
      END IF;
      EXIT WHEN v_seen < v_step;
      v_step := v_step * 4;
    END LOOP;
  END LOOP;
END $$;
COMMENT ON FUNCTION find_artifact IS
'Finds a project''s leaves of an artifact that match the filters (null: any), newest first, at most p_limit, below p_ends in p_log_ids. Looks at p_most leaves: if they do not suffice, the last row is where it stopped, with is_match false.
Locks: none.';

-- Outside the transaction:

-- For lists by build, and by build and schema; a submission without a build has no entry. Build and schema are one
-- expression, because the planner takes an index that starts with the same column, and sorts, where few rows are expected.
-- Concurrently, because all leaves of a log are read while others arrive. An attempt that failed leaves an invalid index.
DROP INDEX CONCURRENTLY IF EXISTS submission_by_build;
CREATE INDEX CONCURRENTLY submission_by_build ON submission (build, project_id, log_id, log_index)
  WHERE build IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS submission_by_build_and_schema;
CREATE INDEX CONCURRENTLY submission_by_build_and_schema
  ON submission ((build || E'\n' || schema), project_id, log_id, log_index) WHERE build IS NOT NULL;
ALTER INDEX submission_by_build_and_schema ALTER COLUMN 1 SET STATISTICS 0;
