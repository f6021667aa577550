-- A function's plans are cached until a table's statistics change. A plan made for a small table would be a sequential
-- scan and stay one while the table grows by millions of rows, so frequently called functions must use indexes.
ALTER FUNCTION take_tokens SET enable_seqscan = off;
ALTER FUNCTION claim_webhook_deliveries SET enable_seqscan = off;
ALTER FUNCTION release_webhook SET enable_seqscan = off;

-- As in 0001_log.sql, but keys and rows are looked up one by one with LIMIT, so no plan can join a whole table.
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
  v_rows CONSTANT integer := cardinality(p_id);
  v_outcome smallint[] := array_fill(0::smallint, ARRAY[v_rows]);
  v_resource text[] := p_id;
  v_index bigint[] := array_fill(NULL::bigint, ARRAY[v_rows]);
  v_new boolean[] := array_fill(true, ARRAY[v_rows]);
  v_taken record;
  v_second bigint[] := array_fill(NULL::bigint, ARRAY[v_rows]);
  v_n_second bigint[] := array_fill(NULL::bigint, ARRAY[v_rows]);
  v_n_hour bigint[] := array_fill(NULL::bigint, ARRAY[v_rows]);
  v_n_day bigint[] := array_fill(NULL::bigint, ARRAY[v_rows]);
  v_next bigint;
  v_position integer;
  v_frozen timestamptz;
  r record;
BEGIN
  IF p_again THEN
    FOR r IN
      SELECT u.n, s.log_index FROM unnest(p_id) WITH ORDINALITY u(id, n)
      CROSS JOIN LATERAL (SELECT s.log_index FROM submission s WHERE s.id = u.id LIMIT 1) s
    LOOP
      v_new[r.n] := false;
      v_index[r.n] := r.log_index;
    END LOOP;
  END IF;

  IF cardinality(array_remove(p_idempotency_key, NULL)) > 0 THEN
    FOR r IN
      SELECT u.n, hashtextextended(u.api_key_id || ' ' || u.key, 0) AS lock_key
      FROM unnest(p_api_key_id, p_idempotency_key) WITH ORDINALITY u(api_key_id, key, n)
      WHERE u.key IS NOT NULL ORDER BY lock_key
    LOOP
      IF v_new[r.n] AND NOT pg_try_advisory_xact_lock(r.lock_key) THEN
        v_new[r.n] := false;
        v_outcome[r.n] := 3;
      END IF;
    END LOOP;
    FOR r IN
      SELECT u.n, k.resource_id, k.request_hash = u.request_hash AS same
      FROM unnest(p_api_key_id, p_idempotency_key, p_request_hash) WITH ORDINALITY u(api_key_id, key, request_hash, n)
      CROSS JOIN LATERAL (
        SELECT k.resource_id, k.request_hash, k.created_at FROM idempotency_key k
        WHERE k.api_key_id = u.api_key_id AND k.key = u.key LIMIT 1
      ) k
      WHERE k.created_at > clock_timestamp() - p_retention_ms * interval '1 millisecond'
    LOOP
      IF v_new[r.n] THEN
        v_new[r.n] := false;
        v_outcome[r.n] := CASE WHEN r.same THEN 1 ELSE 2 END;
        v_resource[r.n] := CASE WHEN r.same THEN r.resource_id END;
      END IF;
    END LOOP;
  END IF;

  FOR r IN
    SELECT u.api_key_id, array_agg(u.n ORDER BY u.n) AS places,
           min(u.limit_second) AS limit_second, min(u.limit_hour) AS limit_hour, min(u.limit_day) AS limit_day
    FROM unnest(p_api_key_id, p_limit_second, p_limit_hour, p_limit_day, v_new)
      WITH ORDINALITY u(api_key_id, limit_second, limit_hour, limit_day, new, n)
    WHERE u.new GROUP BY u.api_key_id ORDER BY u.api_key_id
  LOOP
    SELECT * INTO v_taken FROM take_tokens(r.api_key_id, 2::smallint, cardinality(r.places)::bigint,
                                           r.limit_second, r.limit_hour, r.limit_day);
    FOR v_position IN 1..cardinality(r.places) LOOP
      IF v_position > v_taken.granted THEN
        v_new[r.places[v_position]] := false;
        v_outcome[r.places[v_position]] := 4;
      END IF;
      v_second[r.places[v_position]] := v_taken.second;
      v_n_second[r.places[v_position]] := v_taken.n_second;
      v_n_hour[r.places[v_position]] := v_taken.n_hour;
      v_n_day[r.places[v_position]] := v_taken.n_day;
    END LOOP;
  END LOOP;

  IF true = ANY (v_new) THEN
    PERFORM pg_advisory_xact_lock(1, p_log_id);
    SELECT l.frozen_at INTO STRICT v_frozen FROM log l WHERE l.id = p_log_id;
    IF v_frozen IS NOT NULL THEN
      RAISE EXCEPTION 'log % is frozen', p_log_id USING ERRCODE = 'ATFRZ';
    END IF;
    SELECT coalesce(max(s.log_index) + 1, 0) INTO v_next FROM submission s WHERE s.log_id = p_log_id;
    FOR v_position IN 1..v_rows LOOP
      IF v_new[v_position] THEN
        v_index[v_position] := v_next;
        v_next := v_next + 1;
      END IF;
    END LOOP;
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata,
                            metadata_state, metadata_errors, salt, commitment, dsse_key_id, signature, leaf_hash)
    SELECT p_log_id, u.log_index, u.id, u.project_id, to_timestamp(u.submitted_ms / 1000.0), u.artifact_sha256,
           u.schema, u.metadata, u.metadata_state, u.metadata_errors, u.salt, u.commitment, u.dsse_key_id,
           u.signature, u.leaf_hash
    FROM unnest(v_new, v_index, p_id, p_project_id, p_submitted_ms, p_artifact_sha256, p_schema, p_metadata,
                p_metadata_state, p_metadata_errors, p_salt, p_commitment, p_dsse_key_id, p_signature, p_leaf_hash)
      AS u(new, log_index, id, project_id, submitted_ms, artifact_sha256, schema, metadata, metadata_state,
           metadata_errors, salt, commitment, dsse_key_id, signature, leaf_hash)
    WHERE u.new;
    INSERT INTO idempotency_key (api_key_id, key, request_hash, resource_id, created_at)
    SELECT u.api_key_id, u.key, u.request_hash, u.id, clock_timestamp()
    FROM unnest(v_new, p_api_key_id, p_idempotency_key, p_request_hash, p_id)
      AS u(new, api_key_id, key, request_hash, id)
    WHERE u.new AND u.key IS NOT NULL
    ON CONFLICT ON CONSTRAINT idempotency_key_pkey DO UPDATE
    SET request_hash = excluded.request_hash, resource_id = excluded.resource_id, created_at = excluded.created_at;
  END IF;

  RETURN QUERY SELECT * FROM unnest(v_outcome, v_resource, v_index, v_second, v_n_second, v_n_hour, v_n_day);
END $$;

-- `earliest` is non-decreasing along the log: the first new range has the smallest value, and only the last existing
-- ranges can exceed it. The loop therefore walks from the newest range backwards, which no plan can turn into a full
-- scan.
CREATE OR REPLACE FUNCTION add_log_times() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_latest timestamptz := coalesce((SELECT t.latest FROM log_time t WHERE t.log_id = NEW.log_id
                                    ORDER BY t.end_index DESC LIMIT 1), '-infinity');
  v_earliest timestamptz;
  v_end bigint := NEW.first_index;
BEGIN
  INSERT INTO log_time (log_id, end_index, first_index, tree_size, earliest, latest)
  SELECT NEW.log_id, max(log_index) + 1, min(log_index), NEW.tree_size,
         min(min(submitted_at)) OVER (ORDER BY min(log_index) DESC),
         greatest(v_latest, max(max(submitted_at)) OVER (ORDER BY min(log_index)))
  FROM submission
  WHERE log_id = NEW.log_id AND log_index >= NEW.first_index AND log_index < NEW.tree_size
  GROUP BY (log_index - NEW.first_index) / 256;
  SELECT t.earliest INTO v_earliest FROM log_time t
  WHERE t.log_id = NEW.log_id AND t.end_index > NEW.first_index ORDER BY t.end_index LIMIT 1;
  LOOP
    SELECT t.end_index INTO v_end FROM (
      SELECT l.end_index, l.earliest FROM log_time l WHERE l.log_id = NEW.log_id AND l.end_index <= v_end
      ORDER BY l.end_index DESC LIMIT 1) t
    WHERE t.earliest > v_earliest;
    EXIT WHEN NOT FOUND;
    UPDATE log_time SET earliest = v_earliest WHERE log_id = NEW.log_id AND end_index = v_end;
    v_end := v_end - 1;
  END LOOP;
  RETURN NULL;
END $$;
