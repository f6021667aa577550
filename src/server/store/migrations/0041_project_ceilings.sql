-- Limits hold for a project as well: a ceiling over the calls of its API keys. Null: five times the highest limit that a
-- key of the project has. The counters of a project are rows of rate_counter with its id in place of a key's.
ALTER TABLE project
  ADD COLUMN submissions_per_second bigint CHECK (submissions_per_second >= 0),
  ADD COLUMN submissions_per_hour bigint CHECK (submissions_per_hour >= 0),
  ADD COLUMN submissions_per_day bigint CHECK (submissions_per_day >= 0),
  ADD COLUMN reads_per_second bigint CHECK (reads_per_second >= 0);

CREATE FUNCTION take_project_tokens(
  p_key integer[], p_api_key_id text[], p_project_id text[],
  p_limit_second bigint[], p_limit_hour bigint[], p_limit_day bigint[],
  INOUT p_outcome submission_outcome[], INOUT p_use window_use[]
) LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  c_bucket CONSTANT smallint := 2; -- BUCKET_SUBMISSIONS
  v_place integer[];
  v_returned bigint[];
  v_use window_use;
  v_granted bigint;
  v_over bigint;
  r record;
BEGIN
  SELECT array_agg(array_position(p_api_key_id, u.project_id) ORDER BY u.n) INTO v_place
    FROM unnest(p_project_id) WITH ORDINALITY u(project_id, n);
  FOR r IN
    SELECT v_place[u.key] AS place, count(*) AS wanted FROM unnest(p_key, p_outcome) AS u(key, outcome)
    WHERE u.outcome IS NULL AND v_place[u.key] IS NOT NULL
    GROUP BY v_place[u.key] ORDER BY p_api_key_id[v_place[u.key]]
  LOOP
    SELECT t.granted, t.second, t.n_second, t.n_hour, t.n_day
      INTO v_granted, v_use.second, v_use.n_second, v_use.n_hour, v_use.n_day
      FROM take_tokens(p_api_key_id[r.place], c_bucket, r.wanted,
                       p_limit_second[r.place], p_limit_hour[r.place], p_limit_day[r.place]) t;
    p_use[r.place] := v_use;
    v_over := r.wanted - v_granted;
    CONTINUE WHEN v_over = 0;
    v_returned := array_fill(0::bigint, ARRAY[cardinality(p_api_key_id)]);
    FOR v_n IN REVERSE cardinality(p_key)..1 LOOP
      EXIT WHEN v_over = 0;
      IF v_place[p_key[v_n]] = r.place AND p_outcome[v_n] IS NULL THEN
        p_outcome[v_n] := 'limited';
        v_returned[p_key[v_n]] := v_returned[p_key[v_n]] + 1;
        v_over := v_over - 1;
      END IF;
    END LOOP;
    FOR v_key IN 1..cardinality(p_api_key_id) LOOP
      CONTINUE WHEN v_returned[v_key] = 0;
      p_use[v_key] := return_tokens(p_api_key_id[v_key], c_bucket, v_returned[v_key], p_use[v_key]);
    END LOOP;
  END LOOP;
END $$;
COMMENT ON FUNCTION take_project_tokens IS
'Fourth step of append_submissions: counts the rows without an outcome in the windows of their projects, of those that have an element in the arrays. The rows of a project beyond its ceiling become limited, the last first, and are not counted in the windows of their API keys. p_use has the windows of each project as well then.
Locks: those of take_tokens, in ascending order of project id.';

CREATE FUNCTION return_tokens(p_api_key_id text, p_bucket smallint, p_count bigint, p_use window_use)
RETURNS window_use LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  p_use.n_second := p_use.n_second - p_count;
  p_use.n_hour := p_use.n_hour - p_count;
  p_use.n_day := p_use.n_day - p_count;
  UPDATE rate_counter r SET n_second = p_use.n_second, n_hour = p_use.n_hour, n_day = p_use.n_day
    WHERE r.api_key_id = p_api_key_id AND r.bucket = p_bucket AND r.second = p_use.second;
  RETURN p_use;
END $$;
COMMENT ON FUNCTION return_tokens IS
'Takes calls back that take_tokens has counted in this transaction, with p_use as it returned it. Returns the use of the windows after it.
Locks: none; the caller holds that of take_tokens.';

CREATE FUNCTION take_read_tokens(
  p_api_key_id text, p_project_id text, p_wanted bigint, p_limit bigint, p_project_limit bigint,
  OUT granted bigint, OUT use window_use, OUT left_ms bigint, OUT project_second bigint
) LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  c_bucket CONSTANT smallint := 1; -- BUCKET_READS
  v_granted bigint;
BEGIN
  SELECT t.granted, t.left_ms, t.second, t.n_second, t.n_hour, t.n_day
    INTO granted, left_ms, use.second, use.n_second, use.n_hour, use.n_day
    FROM take_tokens(p_api_key_id, c_bucket, p_wanted, p_limit, NULL, NULL) t;
  IF p_project_limit IS NULL THEN RETURN; END IF;
  SELECT t.granted, t.n_second INTO v_granted, project_second
    FROM take_tokens(p_project_id, c_bucket, granted, p_project_limit, NULL, NULL) t;
  IF v_granted < granted THEN
    use := return_tokens(p_api_key_id, c_bucket, granted - v_granted, use);
    granted := v_granted;
  END IF;
END $$;
COMMENT ON FUNCTION take_read_tokens IS
'Counts up to p_wanted reads of an API key in its window and in that of its project, as many as both have room for. A null p_project_limit does not bind. Returns how many (granted), the use of the key''s windows after it, the rest of its second (left_ms), and the reads of the project in this second (project_second), null without a limit.
Locks: those of take_tokens, of the key and then of the project.';

CREATE OR REPLACE FUNCTION append_submissions(
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
'Appends submissions to a log. p_api_key_id, p_project_id and p_limit_* have an element per API key, the other arrays one per submission; p_key is the place of its API key. A project with a ceiling has an element after those of the API keys, with its id in p_api_key_id and p_project_id and the ceiling in p_limit_*. p_bytes: artifact_sha256, salt, commitment and leaf_hash, 32 bytes each, then the signature. p_metadata: the JCS texts, one per line. p_metadata_errors, p_idempotency_key and p_request_hash are null if no submission has any; a submission with errors is invalid. An idempotency key occurs at most once in a call. Times are Unix milliseconds.
Each step decides the outcome of some submissions; those that no step has decided are stored, in order, from first_index on. outcome, resource_id and log_index are null if all are stored, else they have an element per submission, and a null outcome means stored. use has the windows of each API key and project, null if none of its submissions was counted.
p_is_retry: an earlier call with the same ids may have committed; its rows are returned as stored. The commit of a call that found rows or keys waits as that of one that stored some (confirm_durable). Raises ATFRZ if the log is frozen, and stores nothing if it raises.
Locks: of the idempotency keys (never waited for), then of the rate windows of the API keys and after them of the projects, both in ascending order, then the log''s, last because it is contended most. In this order two calls cannot deadlock. All are held until the transaction ends.';
