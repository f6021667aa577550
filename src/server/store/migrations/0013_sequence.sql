-- Appending submissions in functions of one step each, and a comment on every function: its contract and its locks.
--
-- Every function that reads a growing table sets enable_seqscan = off, and reads by LIMIT in LATERAL: see
-- 0009_plans.sql.
--
-- Columns are passed as one array per column. Measured for 500 rows a call, CPU time of Postgres: one array of a
-- composite type takes 9 to 13 % longer without idempotency keys, 5 to 7 % with them.

-- Outcomes of a submission; SubmissionOutcome in store/submissions has the same names.
CREATE TYPE submission_outcome AS ENUM ('stored', 'replayed', 'key_reused', 'busy', 'limited');

-- Calls of an API key in a second, its hour and its UTC day. `second` is seconds since the epoch.
CREATE TYPE window_use AS (second bigint, n_second bigint, n_hour bigint, n_day bigint);

CREATE FUNCTION find_stored_submissions(
  p_id text[], INOUT p_outcome submission_outcome[], INOUT p_log_index bigint[]
) LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  r record;
BEGIN
  FOR r IN
    SELECT u.n, s.log_index FROM unnest(p_id) WITH ORDINALITY u(id, n)
    CROSS JOIN LATERAL (SELECT s.log_index FROM submission s WHERE s.id = u.id LIMIT 1) s
  LOOP
    p_outcome[r.n] := 'stored';
    p_log_index[r.n] := r.log_index;
  END LOOP;
END $$;
COMMENT ON FUNCTION find_stored_submissions IS
'First step of sequence_submissions, for a retry: looks up the rows that an earlier call stored. Sets their outcome to stored, and their log_index.
Locks: none.';

CREATE FUNCTION claim_idempotency_keys(
  p_api_key_id text[], p_key text[], p_request_hash bytea[], p_retention_ms bigint,
  INOUT p_outcome submission_outcome[], INOUT p_resource_id text[]
) LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  r record;
BEGIN
  FOR r IN
    SELECT u.n, hashtextextended(u.api_key_id || ' ' || u.key, 0) AS lock_key
    FROM unnest(p_api_key_id, p_key, p_outcome) WITH ORDINALITY u(api_key_id, key, outcome, n)
    WHERE u.key IS NOT NULL AND u.outcome IS NULL ORDER BY lock_key
  LOOP
    IF NOT pg_try_advisory_xact_lock(r.lock_key) THEN
      p_outcome[r.n] := 'busy';
    END IF;
  END LOOP;
  FOR r IN
    SELECT u.n, k.resource_id, k.request_hash = u.request_hash AS is_same
    FROM unnest(p_api_key_id, p_key, p_request_hash, p_outcome)
      WITH ORDINALITY u(api_key_id, key, request_hash, outcome, n)
    CROSS JOIN LATERAL (
      SELECT k.resource_id, k.request_hash, k.created_at FROM idempotency_key k
      WHERE k.api_key_id = u.api_key_id AND k.key = u.key LIMIT 1
    ) k
    WHERE u.outcome IS NULL AND k.created_at > clock_timestamp() - p_retention_ms * interval '1 millisecond'
  LOOP
    p_outcome[r.n] := CASE WHEN r.is_same THEN 'replayed' ELSE 'key_reused' END;
    p_resource_id[r.n] := CASE WHEN r.is_same THEN r.resource_id END;
  END LOOP;
END $$;
COMMENT ON FUNCTION claim_idempotency_keys IS
'Second step of sequence_submissions: claims the idempotency keys of the rows without an outcome. A row whose key another transaction holds becomes busy. A row whose key was used within p_retention_ms becomes replayed, with the resource_id of the earlier request, or key_reused if the requests differ. A null key claims nothing.
Locks: the advisory lock of each key (64 bits, a hash of API key id and key), tried in ascending order and never waited for.';

CREATE FUNCTION take_submission_tokens(
  p_api_key_id text[], p_limit_second bigint[], p_limit_hour bigint[], p_limit_day bigint[],
  INOUT p_outcome submission_outcome[], OUT p_use window_use[]
) LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  c_bucket CONSTANT smallint := 2; -- BUCKET_SUBMISSIONS
  v_granted bigint;
  v_use window_use;
  v_place bigint;
  r record;
BEGIN
  p_use := array_fill(NULL::window_use, ARRAY[cardinality(p_api_key_id)]);
  FOR r IN
    SELECT u.api_key_id, array_agg(u.n ORDER BY u.n) AS places,
           min(u.limit_second) AS limit_second, min(u.limit_hour) AS limit_hour, min(u.limit_day) AS limit_day
    FROM unnest(p_api_key_id, p_limit_second, p_limit_hour, p_limit_day, p_outcome)
      WITH ORDINALITY u(api_key_id, limit_second, limit_hour, limit_day, outcome, n)
    WHERE u.outcome IS NULL GROUP BY u.api_key_id ORDER BY u.api_key_id
  LOOP
    SELECT t.granted, t.second, t.n_second, t.n_hour, t.n_day
      INTO v_granted, v_use.second, v_use.n_second, v_use.n_hour, v_use.n_day
      FROM take_tokens(r.api_key_id, c_bucket, cardinality(r.places)::bigint,
                       r.limit_second, r.limit_hour, r.limit_day) t;
    FOREACH v_place IN ARRAY r.places LOOP
      p_use[v_place] := v_use;
    END LOOP;
    FOREACH v_place IN ARRAY r.places[v_granted + 1:] LOOP
      p_outcome[v_place] := 'limited';
    END LOOP;
  END LOOP;
END $$;
COMMENT ON FUNCTION take_submission_tokens IS
'Third step of sequence_submissions: counts the rows without an outcome in the windows of their API keys. The rows of a key beyond its lowest limit become limited, the last first. p_use is null for rows that had an outcome.
Locks: those of take_tokens, in ascending order of API key id.';

CREATE FUNCTION allocate_log_indexes(p_log_id integer, p_outcome submission_outcome[], INOUT p_log_index bigint[])
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  c_write_lock CONSTANT integer := 1; -- LogLock.WRITE
  v_frozen_at timestamptz;
  v_next bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(c_write_lock, p_log_id);
  SELECT l.frozen_at INTO STRICT v_frozen_at FROM log l WHERE l.id = p_log_id;
  IF v_frozen_at IS NOT NULL THEN
    RAISE EXCEPTION 'log % is frozen', p_log_id USING ERRCODE = 'ATFRZ';
  END IF;
  SELECT coalesce(max(s.log_index) + 1, 0) INTO v_next FROM submission s WHERE s.log_id = p_log_id;
  FOR v_n IN 1..cardinality(p_outcome) LOOP
    IF p_outcome[v_n] IS NULL THEN
      p_log_index[v_n] := v_next;
      v_next := v_next + 1;
    END IF;
  END LOOP;
END $$;
COMMENT ON FUNCTION allocate_log_indexes IS
'Fourth step of sequence_submissions: assigns the next indexes of the log to the rows without an outcome, in order. Raises ATFRZ if the log is frozen.
Locks: the advisory lock (1, p_log_id) until the transaction ends, so that indexes have no gaps and readers always see a prefix of the log.';

CREATE FUNCTION record_idempotency_keys(
  p_api_key_id text[], p_key text[], p_request_hash bytea[], p_resource_id text[], p_outcome submission_outcome[]
) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  INSERT INTO idempotency_key (api_key_id, key, request_hash, resource_id, created_at)
  SELECT u.api_key_id, u.key, u.request_hash, u.resource_id, clock_timestamp()
  FROM unnest(p_api_key_id, p_key, p_request_hash, p_resource_id, p_outcome)
    AS u(api_key_id, key, request_hash, resource_id, outcome)
  WHERE u.key IS NOT NULL AND u.outcome IS NULL
  ON CONFLICT ON CONSTRAINT idempotency_key_pkey DO UPDATE
  SET request_hash = excluded.request_hash, resource_id = excluded.resource_id, created_at = excluded.created_at;
END $$;
COMMENT ON FUNCTION record_idempotency_keys IS
'Last step of sequence_submissions: records the idempotency keys of the rows without an outcome, in place of expired records.
Locks: the rows that it writes. The caller holds their advisory locks (claim_idempotency_keys).';

CREATE FUNCTION sequence_submissions(
  p_log_id integer, p_is_retry boolean, p_retention_ms bigint,
  p_id text[], p_project_id text[], p_submitted_ms bigint[], p_artifact_sha256 bytea[], p_schema text[],
  p_metadata text[], p_metadata_state smallint[], p_metadata_errors text[], p_salt bytea[], p_commitment bytea[],
  p_dsse_key_id integer[], p_signature bytea[], p_leaf_hash bytea[],
  p_api_key_id text[], p_idempotency_key text[], p_request_hash bytea[],
  p_limit_second bigint[], p_limit_hour bigint[], p_limit_day bigint[]
) RETURNS TABLE (
  outcome submission_outcome, resource_id text, log_index bigint,
  second bigint, n_second bigint, n_hour bigint, n_day bigint
) LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  v_has_keys CONSTANT boolean := cardinality(array_remove(p_idempotency_key, NULL)) > 0;
  v_outcome submission_outcome[] := array_fill(NULL::submission_outcome, ARRAY[cardinality(p_id)]);
  v_resource_id text[] := p_id;
  v_log_index bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_id)]);
  v_use window_use[];
BEGIN
  IF p_is_retry THEN
    SELECT * INTO v_outcome, v_log_index FROM find_stored_submissions(p_id, v_outcome, v_log_index);
  END IF;
  IF v_has_keys THEN
    SELECT * INTO v_outcome, v_resource_id FROM claim_idempotency_keys(
      p_api_key_id, p_idempotency_key, p_request_hash, p_retention_ms, v_outcome, v_resource_id);
  END IF;
  SELECT * INTO v_outcome, v_use FROM take_submission_tokens(
    p_api_key_id, p_limit_second, p_limit_hour, p_limit_day, v_outcome);
  IF array_position(v_outcome, NULL) IS NOT NULL THEN
    v_log_index := allocate_log_indexes(p_log_id, v_outcome, v_log_index);
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata,
                            metadata_state, metadata_errors, salt, commitment, dsse_key_id, signature, leaf_hash)
    SELECT p_log_id, u.log_index, u.id, u.project_id, to_timestamp(u.submitted_ms / 1000.0), u.artifact_sha256,
           u.schema, u.metadata, u.metadata_state, u.metadata_errors, u.salt, u.commitment, u.dsse_key_id,
           u.signature, u.leaf_hash
    FROM unnest(v_outcome, v_log_index, p_id, p_project_id, p_submitted_ms, p_artifact_sha256, p_schema, p_metadata,
                p_metadata_state, p_metadata_errors, p_salt, p_commitment, p_dsse_key_id, p_signature, p_leaf_hash)
      AS u(outcome, log_index, id, project_id, submitted_ms, artifact_sha256, schema, metadata, metadata_state,
           metadata_errors, salt, commitment, dsse_key_id, signature, leaf_hash)
    WHERE u.outcome IS NULL;
    IF v_has_keys THEN
      PERFORM record_idempotency_keys(p_api_key_id, p_idempotency_key, p_request_hash, p_id, v_outcome);
    END IF;
  END IF;
  RETURN QUERY
    SELECT coalesce(u.outcome, 'stored'), u.resource_id, u.log_index, u.second, u.n_second, u.n_hour, u.n_day
    FROM ROWS FROM (unnest(v_outcome), unnest(v_resource_id), unnest(v_log_index), unnest(v_use))
      AS u(outcome, resource_id, log_index, second, n_second, n_hour, n_day);
END $$;
COMMENT ON FUNCTION sequence_submissions IS
'Appends submissions to a log. Element n of every array is submission n; returns one row per submission, in order. Each step decides the outcome of some rows; a null outcome means not decided yet, and the rows that no step has decided are stored. Times are Unix milliseconds. metadata is JCS text. idempotency_key and request_hash are null for a request without a key; a key occurs at most once in a call.
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
BEGIN
  RETURN QUERY
    SELECT (CASE s.outcome WHEN 'stored' THEN 0 WHEN 'replayed' THEN 1 WHEN 'key_reused' THEN 2 WHEN 'busy' THEN 3
            WHEN 'limited' THEN 4 END)::smallint,
           s.resource_id, s.log_index, s.second, s.n_second, s.n_hour, s.n_day
    FROM sequence_submissions(
      p_log_id => p_log_id, p_is_retry => p_again, p_retention_ms => p_retention_ms,
      p_id => p_id, p_project_id => p_project_id, p_submitted_ms => p_submitted_ms,
      p_artifact_sha256 => p_artifact_sha256, p_schema => p_schema, p_metadata => p_metadata,
      p_metadata_state => p_metadata_state, p_metadata_errors => p_metadata_errors, p_salt => p_salt,
      p_commitment => p_commitment, p_dsse_key_id => p_dsse_key_id, p_signature => p_signature,
      p_leaf_hash => p_leaf_hash, p_api_key_id => p_api_key_id, p_idempotency_key => p_idempotency_key,
      p_request_hash => p_request_hash, p_limit_second => p_limit_second, p_limit_hour => p_limit_hour,
      p_limit_day => p_limit_day) s;
END $$;
COMMENT ON FUNCTION accept_submissions IS
'sequence_submissions as processes of earlier versions call it, with numbers for outcomes.
Locks: those of sequence_submissions.';

CREATE FUNCTION lock_webhook_tokens(p_project_id text, OUT tokens double precision, OUT locked_at timestamptz)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_bucket record;
BEGIN
  INSERT INTO webhook_tokens SELECT p.id, p.webhook_deliveries_burst, clock_timestamp()
    FROM project p WHERE p.id = p_project_id ON CONFLICT DO NOTHING;
  SELECT t.tokens, t.at, p.webhook_deliveries_per_second AS rate, p.webhook_deliveries_burst AS burst INTO v_bucket
    FROM webhook_tokens t JOIN project p ON p.id = t.project_id
    WHERE t.project_id = p_project_id FOR UPDATE OF t;
  locked_at := clock_timestamp();
  tokens := least(v_bucket.burst,
                  v_bucket.tokens + greatest(0, extract(epoch FROM locked_at - v_bucket.at)) * v_bucket.rate);
END $$;
COMMENT ON FUNCTION lock_webhook_tokens IS
'Locks the token bucket of a project and returns its tokens at that time, refilled; the caller stores what it leaves. A clock that steps back adds no tokens.
Locks: the project''s row of webhook_tokens.';

CREATE FUNCTION make_webhook_deliveries(
  p_webhook_id text, p_project_id text, p_now timestamptz, p_visible_ms bigint, p_max integer, p_ids text[]
) RETURNS SETOF webhook_delivery LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  v_made integer := 0;
  v_count integer;
  v_last bigint;
  r webhook_range;
BEGIN
  FOR r IN SELECT * FROM webhook_range g WHERE g.webhook_id = p_webhook_id
           ORDER BY g.log_id, g.tree_size, g.transition LIMIT cardinality(p_ids) LOOP
    EXIT WHEN v_made >= p_max;
    RETURN QUERY
      INSERT INTO webhook_delivery (webhook_id, id, submission_id, log_id, tree_size, transition, attempt,
                                    created_at, next_attempt_at)
      SELECT p_webhook_id, p_ids[v_made + s.n], s.id, r.log_id, r.tree_size, r.transition, 1,
             p_now, p_now + p_visible_ms * interval '1 millisecond'
      FROM (SELECT s.id, row_number() OVER (ORDER BY s.log_index) AS n FROM submission s
            WHERE s.project_id = p_project_id AND s.log_id = r.log_id
              AND s.log_index BETWEEN r.next_index AND r.last_index
            ORDER BY s.log_index LIMIT p_max - v_made) s
      RETURNING *;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    v_made := v_made + v_count;
    IF v_made >= p_max THEN
      SELECT s.log_index INTO v_last FROM submission s WHERE s.id = (
        SELECT d.submission_id FROM webhook_delivery d WHERE d.webhook_id = p_webhook_id AND d.id = p_ids[v_made]);
      UPDATE webhook_range g SET next_index = v_last + 1
        WHERE g.webhook_id = p_webhook_id AND g.log_id = r.log_id AND g.tree_size = r.tree_size
          AND g.transition = r.transition;
    ELSE
      DELETE FROM webhook_range g
        WHERE g.webhook_id = p_webhook_id AND g.log_id = r.log_id AND g.tree_size = r.tree_size
          AND g.transition = r.transition;
    END IF;
  END LOOP;
END $$;
COMMENT ON FUNCTION make_webhook_deliveries IS
'Makes up to p_max deliveries from the ranges of a subscription, oldest first, under the ids given, and returns them as claimed at p_now. A range that is used up is deleted; of the last one the next index is stored.
Locks: the ranges that it changes. The caller holds the subscription.';

CREATE OR REPLACE FUNCTION claim_webhook_deliveries(
  p_webhook_id text, p_lease bigint, p_lease_ms bigint, p_visible_ms bigint, p_max integer, p_ids text[]
) RETURNS SETOF webhook_delivery LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  v_webhook webhook;
  v_tokens double precision;
  v_now timestamptz;
  v_room integer;
  v_claimed integer;
  v_made integer := 0;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE webhook w SET leased_until = clock_timestamp() + p_lease_ms * interval '1 millisecond'
    WHERE w.id = p_webhook_id AND w.lease = p_lease AND w.status <> 3 RETURNING * INTO v_webhook;
  IF NOT FOUND THEN RETURN; END IF;

  SELECT l.tokens, l.locked_at INTO v_tokens, v_now FROM lock_webhook_tokens(v_webhook.project_id) l;
  v_room := least(p_max, floor(v_tokens)::integer);
  IF v_room < 1 THEN
    UPDATE webhook_tokens t SET at = v_now WHERE t.project_id = v_webhook.project_id AND t.at > v_now;
    RETURN;
  END IF;

  RETURN QUERY
    UPDATE webhook_delivery d
    SET attempt = d.attempt + 1, next_attempt_at = v_now + p_visible_ms * interval '1 millisecond'
    FROM (SELECT c.id FROM webhook_delivery c
          WHERE c.webhook_id = p_webhook_id AND c.status = 1 AND c.next_attempt_at <= v_now
            AND (v_webhook.status = 1 OR c.transition IS NULL)
          ORDER BY c.next_attempt_at LIMIT v_room FOR UPDATE SKIP LOCKED) due
    WHERE d.webhook_id = p_webhook_id AND d.id = due.id RETURNING d.*;
  GET DIAGNOSTICS v_claimed = ROW_COUNT;

  IF v_webhook.status = 1 AND v_claimed < v_room THEN
    RETURN QUERY SELECT * FROM make_webhook_deliveries(
      p_webhook_id, v_webhook.project_id, v_now, p_visible_ms, v_room - v_claimed, p_ids);
    GET DIAGNOSTICS v_made = ROW_COUNT;
  END IF;

  UPDATE webhook_tokens t SET tokens = v_tokens - v_claimed - v_made, at = v_now
    WHERE t.project_id = v_webhook.project_id;
END $$;
COMMENT ON FUNCTION claim_webhook_deliveries IS
'Claims up to p_max due deliveries of a subscription, one project token each: first those that wait for another attempt, then new ones (make_webhook_deliveries), whose ids are p_ids, p_max of them. A claimed delivery is due again after p_visible_ms unless its attempt is recorded before. Renews the lease. Returns nothing if the lease is not p_lease any more or the subscription was deleted. Of a disabled subscription only tests are due. Does not wait for the commit to be flushed: a lost claim is made again.
Locks: the subscription, then the project''s tokens, then deliveries; those that another transaction holds are skipped.';

COMMENT ON FUNCTION add_audit_partition IS
'Adds an append-only partition to audit_entry. p_bounds is DEFAULT or FOR VALUES ….
Locks: audit_entry and its default partition, exclusively.';

COMMENT ON FUNCTION add_log_times IS
'Trigger of batch: adds the time bounds of the new leaves to log_time, one row per 256 leaves. Then lowers earliest of the rows before where a new leaf is earlier; they are read from the newest on, and only the last ones can be later.
Locks: the rows of log_time that it changes.';

COMMENT ON FUNCTION audit_id_at IS
'Returns the prefix of the ids of audit entries made at p_at; ids of earlier entries are less.
Locks: none.';

COMMENT ON FUNCTION count_metadata_changes IS
'Trigger of submission: counts corrections and redactions per project in metadata_change.
Locks: the rows of metadata_change, in ascending order of project id, until the change commits: who reads a number sees every change up to it.';

COMMENT ON FUNCTION covered IS
'Returns whether a witness has evidence for a checkpoint of p_tree_size or a later one.
Locks: none.';

COMMENT ON FUNCTION keep_audit_partitions IS
'Drops the partitions of audit_entry that hold nothing younger than p_retention_ms at p_now, and adds those of the next three months. A month of which the default partition has entries already stays there. Does nothing if another transaction runs it.
Locks: an advisory lock of its own, then audit_entry exclusively, for at most two seconds of waiting.';

COMMENT ON FUNCTION leaf_stretches IS
'Returns the stretches of a log below p_end that can hold leaves of a submission status (null: any), submitted after p_after and before p_before (null: any). Disjoint, in no order. Every leaf in a stretch has the status; nearly every one is within the times.
Locks: none.';

COMMENT ON FUNCTION refuse_change IS
'Trigger of append-only tables: raises ATAPP.
Locks: none.';

COMMENT ON FUNCTION release_webhook IS
'Ends a lease and returns the milliseconds until something of the subscription is due; null if nothing is, or the lease is not p_lease any more. What only lacks a project token is due when there is one. Does not wait for the commit to be flushed.
Locks: the subscription, before anything is read: what others make due meanwhile is either seen or sets due_at afterwards.';

COMMENT ON FUNCTION required_witness IS
'Returns the names of the witnesses that a policy requires, except the log itself (kind 1).
Locks: none.';

COMMENT ON FUNCTION status_stretches IS
'Returns the stretches of a log below p_end whose batches have a status, newest first. Comparisons of whole rows leave the planner one index to choose, whatever its statistics say of a rare status.
Locks: none.';

COMMENT ON FUNCTION take_tokens IS
'Counts up to p_wanted calls of an API key in a bucket, as many as all three windows have room for. Returns how many (granted), the use of the windows after it, and the rest of the current second (left_ms). A null limit does not bind. Windows never step back with the clock.
Locks: the advisory lock of key and bucket until the transaction ends, so that counts are exact over all processes.';

COMMENT ON FUNCTION time_stretches IS
'Returns the stretches of a log below p_end outside which nothing was submitted after p_after and before p_before (null: any). Leaves without time bounds yet are always in one.
Locks: none.';
