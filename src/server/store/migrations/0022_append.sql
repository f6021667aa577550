-- Appending submissions with fewer parameters: the API keys are passed once, binary columns in one, and arrays that
-- nothing needs are null, for which unnest gives nulls. CPU time a row, with 64 rows a call: 26 µs of Postgres and 14 of
-- the process that calls it, in place of 34 and 21; with 500 rows 13 and 9 in place of 19 and 16.

DROP FUNCTION sequence_submissions, take_submission_tokens;

CREATE FUNCTION take_key_tokens(
  p_key integer[], p_api_key_id text[], p_limit_second bigint[], p_limit_hour bigint[], p_limit_day bigint[],
  INOUT p_outcome submission_outcome[], OUT p_use window_use[]
) LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  c_bucket CONSTANT smallint := 2; -- BUCKET_SUBMISSIONS
  v_use window_use;
  v_granted bigint;
  v_over bigint;
  r record;
BEGIN
  p_use := array_fill(NULL::window_use, ARRAY[cardinality(p_api_key_id)]);
  FOR r IN
    SELECT u.key, count(*) AS wanted FROM unnest(p_key, p_outcome) AS u(key, outcome)
    WHERE u.outcome IS NULL GROUP BY u.key ORDER BY p_api_key_id[u.key], u.key
  LOOP
    SELECT t.granted, t.second, t.n_second, t.n_hour, t.n_day
      INTO v_granted, v_use.second, v_use.n_second, v_use.n_hour, v_use.n_day
      FROM take_tokens(p_api_key_id[r.key], c_bucket, r.wanted,
                       p_limit_second[r.key], p_limit_hour[r.key], p_limit_day[r.key]) t;
    p_use[r.key] := v_use;
    v_over := r.wanted - v_granted;
    FOR v_n IN REVERSE cardinality(p_key)..1 LOOP
      EXIT WHEN v_over = 0;
      IF p_key[v_n] = r.key AND p_outcome[v_n] IS NULL THEN
        p_outcome[v_n] := 'limited';
        v_over := v_over - 1;
      END IF;
    END LOOP;
  END LOOP;
END $$;
COMMENT ON FUNCTION take_key_tokens IS
'Third step of append_submissions: counts the rows without an outcome in the windows of their API keys. p_key is the place of each row''s API key in the arrays after it. The rows of a key beyond its limits become limited, the last first. p_use has the windows of each key, null if none of its rows was counted.
Locks: those of take_tokens, in ascending order of API key id.';

CREATE FUNCTION append_submissions(
  p_log_id integer, p_is_retry boolean, p_retention_ms bigint,
  p_api_key_id text[], p_project_id text[], p_limit_second bigint[], p_limit_hour bigint[], p_limit_day bigint[],
  p_key integer[], p_id text[], p_submitted_ms bigint[], p_schema text[], p_dsse_key_id integer[], p_bytes bytea[],
  p_metadata text, p_metadata_errors text[], p_idempotency_key text[], p_request_hash bytea[],
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
  SELECT * INTO v_outcome, v_use FROM take_key_tokens(
    p_key, p_api_key_id, p_limit_second, p_limit_hour, p_limit_day, v_outcome);
  v_first := array_position(v_outcome, NULL);
  IF v_first IS NOT NULL THEN
    v_log_index := allocate_log_indexes(p_log_id, v_outcome, v_log_index);
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, schema, dsse_key_id, metadata,
                            metadata_state, metadata_errors, artifact_sha256, salt, commitment, leaf_hash, signature)
    SELECT p_log_id, u.log_index, u.id, p_project_id[u.key],
           timestamptz 'epoch' + u.submitted_ms * interval '1 millisecond', u.schema, u.dsse_key_id, u.metadata,
           CASE WHEN u.metadata_errors IS NULL THEN 1 ELSE 2 END, -- METADATA_STATE_VALID, METADATA_STATE_INVALID
           u.metadata_errors, substring(u.bytes FROM 1 FOR 32), substring(u.bytes FROM 33 FOR 32),
           substring(u.bytes FROM 65 FOR 32), substring(u.bytes FROM 97 FOR 32), substring(u.bytes FROM 129)
    FROM unnest(v_outcome, v_log_index, p_key, p_id, p_submitted_ms, p_schema, p_dsse_key_id, p_bytes,
                v_metadata, p_metadata_errors)
      AS u(outcome, log_index, key, id, submitted_ms, schema, dsse_key_id, bytes, metadata, metadata_errors)
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
'Appends submissions to a log. p_api_key_id, p_project_id and p_limit_* have an element per API key, the other arrays one per submission; p_key is the place of its API key. p_bytes: artifact_sha256, salt, commitment and leaf_hash, 32 bytes each, then the signature. p_metadata: the JCS texts, one per line. p_metadata_errors, p_idempotency_key and p_request_hash are null if no submission has any; a submission with errors is invalid. An idempotency key occurs at most once in a call. Times are Unix milliseconds.
Each step decides the outcome of some submissions; those that no step has decided are stored, in order, from first_index on. outcome, resource_id and log_index are null if all are stored, else they have an element per submission, and a null outcome means stored. use has the windows of each API key, null if none of its submissions was counted.
p_is_retry: an earlier call with the same ids may have committed; its rows are returned as stored. Raises ATFRZ if the log is frozen, and stores nothing if it raises.
Locks: of the idempotency keys (never waited for), then of the API keys'' rate windows in ascending order, then the log''s, last because it is contended most. In this order two calls cannot deadlock. All are held until the transaction ends.';

CREATE OR REPLACE FUNCTION accept_submissions(
  p_log_id integer, p_again boolean, p_retention_ms bigint,
  p_id text[], p_project_id text[], p_api_key_id text[], p_submitted_ms bigint[], p_artifact_sha256 bytea[],
  p_schema text[], p_metadata text[], p_metadata_state smallint[], p_metadata_errors text[],
  p_salt bytea[], p_commitment bytea[], p_dsse_key_id integer[], p_signature bytea[], p_leaf_hash bytea[],
  p_idempotency_key text[], p_request_hash bytea[],
  p_limit_second bigint[], p_limit_hour bigint[], p_limit_day bigint[]
) RETURNS TABLE (
  outcome smallint, resource_id text, log_index bigint,
  second bigint, n_second bigint, n_hour bigint, n_day bigint
) LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  r record;
BEGIN
  SELECT * INTO r FROM append_submissions(
    p_log_id => p_log_id, p_is_retry => p_again, p_retention_ms => p_retention_ms,
    p_api_key_id => p_api_key_id, p_project_id => p_project_id, p_limit_second => p_limit_second,
    p_limit_hour => p_limit_hour, p_limit_day => p_limit_day,
    p_key => ARRAY(SELECT generate_series(1, cardinality(p_id))), p_id => p_id, p_submitted_ms => p_submitted_ms,
    p_schema => p_schema, p_dsse_key_id => p_dsse_key_id,
    p_bytes => ARRAY(
      SELECT u.artifact_sha256 || u.salt || u.commitment || u.leaf_hash || u.signature
      FROM unnest(p_artifact_sha256, p_salt, p_commitment, p_leaf_hash, p_signature) WITH ORDINALITY
        AS u(artifact_sha256, salt, commitment, leaf_hash, signature, n) ORDER BY u.n),
    p_metadata => array_to_string(p_metadata, E'\n'), p_metadata_errors => p_metadata_errors,
    p_idempotency_key => p_idempotency_key, p_request_hash => p_request_hash);
  RETURN QUERY
    SELECT (CASE r.outcome ->> i WHEN 'replayed' THEN 1 WHEN 'key_reused' THEN 2 WHEN 'busy' THEN 3
            WHEN 'limited' THEN 4 ELSE 0 END)::smallint,
           CASE WHEN r.resource_id IS NULL THEN p_id[i + 1] ELSE r.resource_id ->> i END,
           CASE WHEN r.log_index IS NULL THEN r.first_index + i ELSE (r.log_index ->> i)::bigint END,
           u.second, u.n_second, u.n_hour, u.n_day
    FROM generate_series(0, cardinality(p_id) - 1) i
    LEFT JOIN LATERAL json_populate_record(
      NULL::window_use, CASE json_typeof(r.use -> i) WHEN 'object' THEN r.use -> i END) u ON true;
END $$;
COMMENT ON FUNCTION accept_submissions IS
'append_submissions as processes of earlier versions call it: everything per submission, and numbers for outcomes.
Locks: those of append_submissions.';

COMMENT ON FUNCTION find_stored_submissions IS
'First step of append_submissions, for a retry: looks up the rows that an earlier call stored. Sets their outcome to stored, and their log_index.
Locks: none.';
COMMENT ON FUNCTION claim_idempotency_keys IS
'Second step of append_submissions: claims the idempotency keys of the rows without an outcome. A row whose key another transaction holds becomes busy. A row whose key was used within p_retention_ms becomes replayed, with the resource_id of the earlier request, or key_reused if the requests differ. A null key claims nothing.
Locks: the advisory lock of each key (64 bits, a hash of API key id and key), tried in ascending order and never waited for.';
COMMENT ON FUNCTION allocate_log_indexes IS
'Fourth step of append_submissions: assigns the next indexes of the log to the rows without an outcome, in order. Raises ATFRZ if the log is frozen.
Locks: the advisory lock (1, p_log_id) until the transaction ends, so that indexes have no gaps and readers always see a prefix of the log.';
COMMENT ON FUNCTION record_idempotency_keys IS
'Last step of append_submissions: records the idempotency keys of the rows without an outcome, in place of expired records.
Locks: the rows that it writes. The caller holds their advisory locks (claim_idempotency_keys).';
