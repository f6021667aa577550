-- Submissions are in partitions, each a range of the leaves of one log.
--
-- Processes of the version before go on: names, columns, functions and indexes are as they were. No row is moved: the table
-- that there was becomes the partition of all logs from before, which stay in it. An empty one goes.

-- Better to fail and be run again than to keep every process waiting behind a long read of the table.
SET LOCAL lock_timeout = '5s';

LOCK TABLE log IN SHARE ROW EXCLUSIVE MODE;
LOCK TABLE submission IN ACCESS EXCLUSIVE MODE;
DROP TRIGGER submission_change ON submission;
DROP TRIGGER submission_export ON submission;
ALTER TABLE submission RENAME TO submission_former;
ALTER INDEX submission_pkey RENAME TO submission_former_pkey;
ALTER INDEX submission_of_id RENAME TO submission_former_of_id;
ALTER INDEX submission_of_project RENAME TO submission_former_of_project;
ALTER INDEX submission_of_schema RENAME TO submission_former_of_schema;
ALTER INDEX submission_by_build RENAME TO submission_former_by_build;
ALTER INDEX submission_by_build_and_schema RENAME TO submission_former_by_build_and_schema;

-- There is no default partition: a row that no partition takes is stored nowhere, and one with rows would be read whole,
-- under a lock, whenever a partition is added.
CREATE TABLE submission (LIKE submission_former INCLUDING DEFAULTS INCLUDING STORAGE, PRIMARY KEY (log_id, log_index))
  PARTITION BY RANGE (log_id, log_index);
-- As before; see 0001_initial.sql, 0002_build.sql and 0009_small_indexes.sql.
ALTER TABLE submission
  ALTER COLUMN metadata SET STATISTICS 0, ALTER COLUMN metadata_errors SET STATISTICS 0,
  ALTER COLUMN attested_metadata SET STATISTICS 0, ALTER COLUMN salt SET STATISTICS 0,
  ALTER COLUMN build SET STATISTICS 0;
CREATE INDEX submission_of_id ON submission (substr(id, 5, 15));
CREATE INDEX submission_of_project ON submission (hashtext(project_id), log_id, (log_index >> 4));
CREATE INDEX submission_of_schema ON submission (hashtext(project_id || E'\n' || schema), log_id, (log_index >> 4));
CREATE INDEX submission_by_build ON submission (build, project_id, log_id, log_index) WHERE build IS NOT NULL;
CREATE INDEX submission_by_build_and_schema
  ON submission ((build || E'\n' || schema), project_id, log_id, log_index) WHERE build IS NOT NULL;
CREATE TRIGGER submission_change AFTER UPDATE ON submission REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION count_metadata_changes();
CREATE TRIGGER submission_export AFTER UPDATE ON submission REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_metadata_changes();

-- The partitions with their ranges, from the catalogs. Null: the partition of the logs from before, all below `end_log_id`.
CREATE VIEW submission_partition AS
SELECT c.relname::text AS name, nullif(b.bound[1], 'MINVALUE')::integer AS log_id,
       nullif(b.bound[2], 'MINVALUE')::bigint AS first_index, b.bound[3]::integer AS end_log_id,
       nullif(b.bound[4], 'MINVALUE')::bigint AS end_index
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
CROSS JOIN LATERAL (
  SELECT regexp_match(replace(pg_get_expr(c.relpartbound, c.oid), '''', ''),
                      'FROM \((\S+), (\S+)\) TO \((\S+), (\S+)\)') AS bound
) b
WHERE i.inhparent = 'submission'::regclass AND NOT i.inhdetachpending;

-- 2^26 leaves are 39 GB, which one can archive at a time, and a thousand million are in 15 partitions: Postgres takes 8 µs for
-- each in a look-up by id, whose partition is not known.
CREATE FUNCTION add_submission_partition(p_log_id integer, p_leaves bigint DEFAULT 67108864) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_number integer;
  v_first bigint;
  v_name text;
  v_schema CONSTANT name := (SELECT c.relnamespace::regnamespace FROM pg_class c WHERE c.oid = 'submission'::regclass);
  v_statistics text;
BEGIN
  LOCK TABLE submission IN SHARE UPDATE EXCLUSIVE MODE;
  IF EXISTS (SELECT FROM submission_partition p WHERE p.log_id IS NULL AND p_log_id < p.end_log_id) THEN
    RETURN NULL;
  END IF;
  SELECT substring(p.name FROM '\d+$')::integer, p.end_index INTO v_number, v_first FROM submission_partition p
    WHERE p.log_id = p_log_id ORDER BY p.end_index DESC LIMIT 1;
  v_name := format('submission_%s_%s', p_log_id, coalesce(v_number + 1, 0));
  v_first := coalesce(v_first, 0);
  SELECT string_agg(format('ALTER COLUMN %I SET STATISTICS %s', a.attname, a.attstattarget), ', ') INTO v_statistics
    FROM pg_attribute a WHERE a.attrelid = 'submission'::regclass AND a.attstattarget >= 0 AND a.attnum > 0;
  EXECUTE format('CREATE TABLE %I.%I (LIKE submission INCLUDING ALL)', v_schema, v_name);
  EXECUTE format('ALTER TABLE %I %s', v_name, v_statistics);
  EXECUTE format('ALTER TABLE submission ATTACH PARTITION %I FOR VALUES FROM (%s, %s) TO (%s, %s)',
                 v_name, p_log_id, v_first, p_log_id, v_first + p_leaves);
  RETURN v_name;
END $$;
COMMENT ON FUNCTION add_submission_partition IS
'Adds the partition of the next p_leaves leaves of a log behind its last one, submission_<log id>_<number>. Returns its name, or null if the log is in the partition of the logs from before, which has no end.
Locks: submission, SHARE UPDATE EXCLUSIVE until the transaction ends, with which rows are read and written.';

CREATE FUNCTION add_first_partition() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  PERFORM add_submission_partition(NEW.id);
  RETURN NULL;
END $$;
COMMENT ON FUNCTION add_first_partition IS
'Trigger of log: a log has its first partition from the transaction on that creates it, also by a process of the version before.
Locks: those of add_submission_partition.';
CREATE TRIGGER log_partition AFTER INSERT ON log FOR EACH ROW EXECUTE FUNCTION add_first_partition();

-- An append looks at the newest leaves only, so that of many partitions it reads one or two (also allocate_log_indexes, in
-- 0014_archive.sql): planned once for any, because a plan for each call takes longer than what it saves.

DROP FUNCTION assert_new_ids;
CREATE FUNCTION assert_new_ids(p_log_id integer, p_first_index bigint, p_id text[], p_outcome submission_outcome[])
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_from CONSTANT bigint := p_first_index - 4194304;
BEGIN
  -- A range and an order, so that no other index is chosen for a small table.
  PERFORM FROM unnest(p_id, p_outcome) u(id, outcome)
    CROSS JOIN LATERAL (
      SELECT FROM submission s
      WHERE substr(s.id, 5, 15) BETWEEN substr(u.id, 5, 15) AND substr(u.id, 5, 15) AND s.id = u.id
        AND s.log_id = p_log_id AND s.log_index >= v_from
      ORDER BY substr(s.id, 5, 15) LIMIT 1
    ) s
    WHERE u.outcome IS NULL LIMIT 1;
  IF FOUND THEN
    RAISE unique_violation USING MESSAGE = 'a submission with one of the ids is stored already';
  END IF;
END $$;
COMMENT ON FUNCTION assert_new_ids IS
'Step of append_submissions, under the lock of the log, with which all rows that could have the ids are visible: raises unique_violation if a row without an outcome is stored already. In place of a unique index, which would have whole ids. Looks at the newest 4,194,304 leaves, more than a log takes in the two minutes before p_first_index: another call with an id, which its process makes, ends within the 10 s that the process waits.
Locks: none.';

CREATE OR REPLACE FUNCTION append_submissions(
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
    PERFORM assert_new_ids(p_log_id, v_log_index[v_first], p_id, v_outcome);
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
p_is_retry: an earlier call with the same ids may have committed; its rows are returned as stored. The commit of a call that found rows or keys waits as that of one that stored some (confirm_durable). Raises ATFRZ if the log is frozen and unique_violation if an id is stored already, and stores nothing if it raises.
Locks: of the idempotency keys (never waited for), then of the rate windows of the API keys and after them of the projects, both in ascending order, then the log''s, last because it is contended most. In this order two calls cannot deadlock. All are held until the transaction ends.';

-- Ranges of a project's leaves are read from the partitions of the range only. No log has the second id: such an alternative
-- is in no index but a bitmap, so that none is chosen for it (leaf-blocks.ts).

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
      WHERE (hashtext(s.project_id), s.log_id, s.log_index >> 4) >= (hashtext(p_project_id), p_log_id, p_first >> 4)
        AND (hashtext(s.project_id), s.log_id, s.log_index >> 4) <= (hashtext(p_project_id), p_log_id, (p_end - 1) >> 4)
        AND (s.project_id = p_project_id AND s.log_index >= p_first AND s.log_index < p_end)::integer <> 0
        AND (s.log_id = p_log_id AND s.log_index >= p_first OR s.log_id = -p_log_id AND s.log_index > p_first)
        AND (s.log_id = p_log_id AND s.log_index < p_end OR s.log_id = -p_log_id AND s.log_index <= p_end)
      ORDER BY hashtext(s.project_id) DESC, s.log_id DESC, s.log_index >> 4 DESC, s.log_index DESC LIMIT p_limit;
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

CREATE OR REPLACE FUNCTION make_webhook_deliveries(
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
            WHERE (hashtext(s.project_id), s.log_id, s.log_index >> 4)
                  >= (hashtext(p_project_id), r.log_id, r.next_index >> 4)
              AND (hashtext(s.project_id), s.log_id, s.log_index >> 4)
                  <= (hashtext(p_project_id), r.log_id, r.last_index >> 4)
              AND (s.project_id = p_project_id AND s.log_index BETWEEN r.next_index AND r.last_index)::integer <> 0
              AND (s.log_id = r.log_id AND s.log_index >= r.next_index
                   OR s.log_id = -r.log_id AND s.log_index > r.next_index)
              AND (s.log_id = r.log_id AND s.log_index <= r.last_index
                   OR s.log_id = -r.log_id AND s.log_index < r.last_index)
            ORDER BY hashtext(s.project_id), s.log_id, s.log_index >> 4, s.log_index LIMIT p_max - v_made) s
      RETURNING *;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    v_made := v_made + v_count;
    IF v_made >= p_max THEN
      SELECT s.log_index INTO v_last
        FROM (SELECT d.submission_id AS id FROM webhook_delivery d
              WHERE d.webhook_id = p_webhook_id AND d.id = p_ids[v_made]) d
        CROSS JOIN LATERAL (
          SELECT s.log_index FROM submission s WHERE substr(s.id, 5, 15) = substr(d.id, 5, 15) AND s.id = d.id LIMIT 1
        ) s;
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

DO $$
DECLARE
  v_end integer := (SELECT substring(pg_get_constraintdef(c.oid) FROM '\d+') FROM pg_constraint c
                    WHERE c.conname = 'submission_former_bound');
BEGIN
  IF EXISTS (SELECT FROM submission_former LIMIT 1) THEN
    EXECUTE format('ALTER TABLE submission ATTACH PARTITION submission_former
                    FOR VALUES FROM (MINVALUE, MINVALUE) TO (%s, MINVALUE)', v_end);
    ALTER TABLE submission_former DROP CONSTRAINT submission_former_bound;
    -- New logs have partitions of their own.
    PERFORM setval(pg_get_serial_sequence('log', 'id'), v_end, false);
  ELSE
    DROP TABLE submission_former;
    PERFORM add_submission_partition(l.id) FROM log l ORDER BY l.id;
  END IF;
END $$;
