-- Submissions have numbers in place of the names of their project and schema, and lists by build have smaller indexes: 41
-- bytes a row less, and 207 with a build.
--
-- Processes of the version before know names and the former indexes only. So in a database that has logs submissions get
-- numbers from a day after this migration on, and after the last call of such a process; a worker drops the indexes a day after
-- the migration (former-indexes.ts). A row keeps its form: named_submission shows both alike.

-- Better to fail and be run again than to keep every process waiting behind a long read of the table.
SET LOCAL lock_timeout = '5s';

-- The names that numbers stand for: of projects (schema is ''), and of their schemas. A number is the hash of its names, by
-- which indexes find the rows that have names too. Of two with one hash the second has no number: its rows have names.
CREATE TABLE IF NOT EXISTS submission_name (
  number integer PRIMARY KEY,
  project_id text COLLATE "C" NOT NULL,
  schema text NOT NULL
);

-- From when on submissions get numbers: one row.
CREATE TABLE IF NOT EXISTS submission_numbering (since timestamptz NOT NULL);
INSERT INTO submission_numbering SELECT 'infinity' WHERE NOT EXISTS (SELECT FROM submission_numbering);

ALTER TABLE submission
  ADD COLUMN IF NOT EXISTS project_number integer, ADD COLUMN IF NOT EXISTS schema_number integer,
  ALTER COLUMN project_id DROP NOT NULL, ALTER COLUMN schema DROP NOT NULL;
ALTER TABLE submission DROP CONSTRAINT IF EXISTS submission_named;
ALTER TABLE submission ADD CONSTRAINT submission_named CHECK (
  (project_id IS NULL) = (schema IS NULL) AND (project_id IS NULL) = (project_number IS NOT NULL)
  AND (schema IS NULL) = (schema_number IS NOT NULL)) NOT VALID;

-- As those of 0009_small_indexes.sql, whose place the first two take. A build is hashed with its project's or schema's key.
CREATE INDEX IF NOT EXISTS submission_project_leaves ON ONLY submission
  ((coalesce(project_number, hashtext(project_id))), log_id, (log_index >> 4));
CREATE INDEX IF NOT EXISTS submission_schema_leaves ON ONLY submission
  ((coalesce(schema_number, hashtext(project_id || E'\n' || schema))), log_id, (log_index >> 4));
CREATE INDEX IF NOT EXISTS submission_build_leaves ON ONLY submission
  (hashtextextended(build, coalesce(project_number, hashtext(project_id))), log_id, (log_index >> 4)) WHERE build IS NOT NULL;
CREATE INDEX IF NOT EXISTS submission_build_schema_leaves ON ONLY submission
  (hashtextextended(build, coalesce(schema_number, hashtext(project_id || E'\n' || schema))), log_id, (log_index >> 4))
  WHERE build IS NOT NULL;

-- Submissions with their names. Who reads many by the indexes above compares numbers instead (leaf-blocks.ts): of a page of
-- 298 µs the names would take 50.
CREATE OR REPLACE VIEW named_submission AS
SELECT s.log_id, s.log_index, s.id, coalesce(s.project_id, n.project_id) AS project_id, s.submitted_at, s.artifact_sha256,
       coalesce(s.schema, n.schema) AS schema, s.metadata, s.metadata_state, s.metadata_errors, s.attested_schema,
       s.attested_metadata, s.salt, s.commitment, s.statement_version, s.dsse_key_id, s.signature, s.leaf_hash, s.redacted_at,
       s.build, s.project_number, s.schema_number, s.xmin::text AS version
FROM submission s LEFT JOIN submission_name n ON n.number = s.schema_number;

CREATE OR REPLACE FUNCTION number_names(
  p_knows_numbers boolean, p_outcome submission_outcome[], p_key integer[], p_project_id text[], p_schema text[]
) RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_number integer[];
  v_project_id text[];
  v_schema text[];
BEGIN
  IF NOT p_knows_numbers THEN
    UPDATE submission_numbering SET since = clock_timestamp() + interval '24 hours'
      WHERE since < clock_timestamp() + interval '23 hours';
    RETURN false;
  END IF;
  IF (SELECT g.since > clock_timestamp() FROM submission_numbering g) THEN
    RETURN false;
  END IF;
  SELECT array_agg(w.number ORDER BY w.number, u.key, w.schema),
         array_agg(p_project_id[u.key] ORDER BY w.number, u.key, w.schema),
         array_agg(w.schema ORDER BY w.number, u.key, w.schema)
    INTO v_number, v_project_id, v_schema
    FROM (SELECT DISTINCT u.key, u.schema FROM unnest(p_outcome, p_key, p_schema) u(outcome, key, schema)
          WHERE u.outcome IS NULL) u
    CROSS JOIN LATERAL (VALUES (hashtext(p_project_id[u.key]), ''),
                               (hashtext(p_project_id[u.key] || E'\n' || u.schema), u.schema)) w(number, schema)
    WHERE NOT EXISTS (SELECT FROM submission_name n WHERE n.number = w.number AND n.project_id = p_project_id[u.key]
                      AND n.schema = w.schema LIMIT 1);
  IF v_number IS NULL THEN
    RETURN true;
  END IF;
  INSERT INTO submission_name SELECT * FROM unnest(v_number, v_project_id, v_schema) ON CONFLICT DO NOTHING;
  RETURN NOT EXISTS (
    SELECT FROM unnest(v_number, v_project_id, v_schema) w(number, project_id, schema)
    WHERE NOT EXISTS (SELECT FROM submission_name n WHERE n.number = w.number AND n.project_id = w.project_id
                      AND n.schema = w.schema LIMIT 1));
END $$;
COMMENT ON FUNCTION number_names IS
'Step of append_submissions: gives numbers to the projects and schemas of the rows without an outcome. Returns whether the rows get them: not within a day of a call of a process that does not know them, which is noted, nor if another name has one of them.
Locks: the row of that note, once an hour; the new numbers, in ascending order, after all others of a call, until the transaction ends: another log''s call may wait for one.';

CREATE OR REPLACE FUNCTION store_rows(
  p_log_id integer, p_knows_numbers boolean, p_outcome submission_outcome[], p_log_index bigint[], p_key integer[], p_project_id text[], p_id text[],
  p_submitted_ms bigint[], p_schema text[], p_dsse_key_id integer[], p_bytes bytea[], p_metadata text[],
  p_metadata_errors text[], p_build text[], p_statement_version smallint[]
) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_is_numbered CONSTANT boolean := number_names(p_knows_numbers, p_outcome, p_key, p_project_id, p_schema);
BEGIN
  INSERT INTO submission (log_id, log_index, id, project_id, schema, project_number, schema_number, submitted_at, dsse_key_id,
    metadata, metadata_state, metadata_errors, artifact_sha256, salt, commitment, leaf_hash, signature, build,
    statement_version)
  SELECT p_log_id, u.log_index, u.id, CASE WHEN NOT v_is_numbered THEN p_project_id[u.key] END,
         CASE WHEN NOT v_is_numbered THEN u.schema END, CASE WHEN v_is_numbered THEN hashtext(p_project_id[u.key]) END,
         CASE WHEN v_is_numbered THEN hashtext(p_project_id[u.key] || E'\n' || u.schema) END,
         timestamptz 'epoch' + u.submitted_ms * interval '1 millisecond', u.dsse_key_id,
         u.metadata, CASE WHEN u.metadata_errors IS NULL THEN 1 ELSE 2 END, -- MetadataState
         u.metadata_errors, substring(u.bytes FROM 1 FOR 32),
         CASE WHEN u.statement_version IS DISTINCT FROM 3 THEN substring(u.bytes FROM 33 FOR 32) END,
         CASE WHEN u.statement_version = 3 THEN '' ELSE substring(u.bytes FROM 65 FOR 32) END,
         substring(u.bytes FROM 97 FOR 32), substring(u.bytes FROM 129), u.build, coalesce(u.statement_version, 1)
  FROM unnest(p_outcome, p_log_index, p_key, p_id, p_submitted_ms, p_schema, p_dsse_key_id, p_bytes, p_metadata,
              p_metadata_errors, p_build, p_statement_version)
    AS u(outcome, log_index, key, id, submitted_ms, schema, dsse_key_id, bytes, metadata, metadata_errors, build,
         statement_version)
  WHERE u.outcome IS NULL;
END $$;
COMMENT ON FUNCTION store_rows IS
'Step of append_submissions: stores the rows without an outcome, with numbers in place of names if number_names says so.
Locks: those of number_names.';

DROP FUNCTION IF EXISTS append_submissions;
CREATE FUNCTION append_submissions(
  p_log_id integer, p_is_retry boolean, p_retention_ms bigint,
  p_api_key_id text[], p_project_id text[], p_limit_second bigint[], p_limit_hour bigint[], p_limit_day bigint[],
  p_key integer[], p_id text[], p_submitted_ms bigint[], p_schema text[], p_dsse_key_id integer[], p_bytes bytea[],
  p_metadata text, p_metadata_errors text[], p_idempotency_key text[], p_request_hash bytea[],
  p_build text[] DEFAULT NULL, p_statement_version smallint[] DEFAULT NULL, p_statement text DEFAULT NULL,
  p_digest bytea[] DEFAULT NULL, p_shown text[] DEFAULT NULL, p_subjects text[] DEFAULT NULL,
  p_knows_numbers boolean DEFAULT false,
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
    PERFORM store_rows(p_log_id, p_knows_numbers, v_outcome, v_log_index, p_key, p_project_id, p_id, p_submitted_ms, p_schema, p_dsse_key_id,
                       p_bytes, v_metadata, p_metadata_errors, p_build, p_statement_version);
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
'Appends submissions to a log. p_api_key_id, p_project_id and p_limit_* have an element per API key, the other arrays one per submission; p_key is the place of its API key. A project with a ceiling has an element after those of the API keys, with its id in p_api_key_id and p_project_id and the ceiling in p_limit_*. p_bytes: artifact_sha256, salt, commitment and leaf_hash, 32 bytes each, then the signature. p_metadata: the JCS texts, one per line. p_metadata_errors, p_idempotency_key, p_request_hash and p_build are null if no submission has any; a submission with errors is invalid. So are p_statement_version, whose elements are null where it is 1, p_statement, one statement per line and an empty line where it is not stored, p_digest, p_shown and p_subjects, whose elements are arrays of hashes as text. p_knows_numbers: whether processes of the caller''s version read rows with numbers. An idempotency key occurs at most once in a call. Times are Unix milliseconds.
Each step decides the outcome of some submissions; those that no step has decided are stored, in order, from first_index on. outcome, resource_id and log_index are null if all are stored, else they have an element per submission, and a null outcome means stored. use has the windows of each API key and project, null if none of its submissions was counted.
p_is_retry: an earlier call with the same ids may have committed; its rows are returned as stored. The commit of a call that found rows or keys waits as that of one that stored some (confirm_durable). Raises ATFRZ if the log is frozen and unique_violation if an id is stored already, and stores nothing if it raises.
Locks: of the idempotency keys (never waited for), then of the rate windows of the API keys and after them of the projects, both in ascending order, then the log''s, last because it is contended most. In this order two calls cannot deadlock. All are held until the transaction ends.';

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
        SELECT * FROM named_submission s WHERE s.log_id = v_run.log_id AND s.log_index = l.leaf LIMIT 1
      ) s;
      EXIT WHEN NOT FOUND;
      RETURN QUERY SELECT v_key;
      v_number := ('x' || encode(v_key, 'hex'))::bit(32)::bigint - 1;
    END LOOP;
  END LOOP;
  RETURN QUERY
    SELECT DISTINCT substr(sha256(coalesce(s.project_id, (
      SELECT n.project_id FROM submission_name n WHERE n.number = s.project_number))::bytea), 1, 4)
    FROM log l
    CROSS JOIN LATERAL (
      SELECT coalesce((SELECT r.end_index FROM artifact_run r WHERE r.log_id = l.id AND r.is_current
                       ORDER BY r.end_index DESC LIMIT 1), 0) AS size
    ) indexed
    CROSS JOIN LATERAL (
      SELECT s.project_id, s.project_number, s.log_id, s.log_index, s.artifact_sha256, s.statement_version FROM submission s
      WHERE s.log_id = l.id AND s.log_index >= indexed.size
      ORDER BY s.log_index DESC LIMIT p_most
    ) s
    WHERE s.artifact_sha256 = p_artifact_sha256 OR s.statement_version = 3 AND coalesce((
      SELECT p_artifact_sha256 = ANY (t.subjects) FROM submission_statement t
      WHERE t.log_id = s.log_id AND t.log_index = s.log_index LIMIT 1), false);
END $$;
CREATE OR REPLACE FUNCTION artifact_rows(
  p_run_id bigint, p_log_id integer, p_first bigint, p_end bigint, p_project_id text, p_artifact_sha256 bytea,
  p_limit integer
) RETURNS TABLE (log_index bigint, is_artifact boolean, schema text, submitted_at timestamptz)
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
  v_number CONSTANT integer := (
    SELECT n.number FROM submission_name n WHERE n.number = hashtext(p_project_id) AND n.project_id = p_project_id);
BEGIN
  IF p_run_id IS NULL THEN
    RETURN QUERY
      SELECT s.log_index,
             s.artifact_sha256 = p_artifact_sha256 OR s.statement_version = 3 AND coalesce((
               SELECT p_artifact_sha256 = ANY (t.subjects) FROM submission_statement t
               WHERE t.log_id = s.log_id AND t.log_index = s.log_index LIMIT 1), false),
             coalesce(s.schema, (SELECT n.schema FROM submission_name n WHERE n.number = s.schema_number)), s.submitted_at
      FROM submission s
      WHERE (coalesce(s.project_number, hashtext(s.project_id)), s.log_id, s.log_index >> 4)
            >= (hashtext(p_project_id), p_log_id, p_first >> 4)
        AND (coalesce(s.project_number, hashtext(s.project_id)), s.log_id, s.log_index >> 4)
            <= (hashtext(p_project_id), p_log_id, (p_end - 1) >> 4)
        AND ((s.project_id = p_project_id OR s.project_number = v_number)
             AND s.log_index >= p_first AND s.log_index < p_end)::integer <> 0
        AND (s.log_id = p_log_id AND s.log_index >= p_first OR s.log_id = -p_log_id AND s.log_index > p_first)
        AND (s.log_id = p_log_id AND s.log_index < p_end OR s.log_id = -p_log_id AND s.log_index <= p_end)
      ORDER BY coalesce(s.project_number, hashtext(s.project_id)) DESC, s.log_id DESC, s.log_index >> 4 DESC, s.log_index DESC
      LIMIT p_limit;
  ELSE
    RETURN QUERY
      SELECT l.leaf,
             (s.project_id = p_project_id OR s.project_number = v_number) AND (
               s.artifact_sha256 = p_artifact_sha256 OR s.statement_version = 3 AND coalesce((
                 SELECT p_artifact_sha256 = ANY (t.subjects) FROM submission_statement t
                 WHERE t.log_id = s.log_id AND t.log_index = s.log_index LIMIT 1), false)),
             coalesce(s.schema, (SELECT n.schema FROM submission_name n WHERE n.number = s.schema_number)), s.submitted_at
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
  v_number CONSTANT integer := (
    SELECT n.number FROM submission_name n WHERE n.number = hashtext(p_project_id) AND n.project_id = p_project_id);
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
            WHERE (coalesce(s.project_number, hashtext(s.project_id)), s.log_id, s.log_index >> 4)
                  >= (hashtext(p_project_id), r.log_id, r.next_index >> 4)
              AND (coalesce(s.project_number, hashtext(s.project_id)), s.log_id, s.log_index >> 4)
                  <= (hashtext(p_project_id), r.log_id, r.last_index >> 4)
              AND ((s.project_id = p_project_id OR s.project_number = v_number)
                   AND s.log_index BETWEEN r.next_index AND r.last_index)::integer <> 0
              AND (s.log_id = r.log_id AND s.log_index >= r.next_index
                   OR s.log_id = -r.log_id AND s.log_index > r.next_index)
              AND (s.log_id = r.log_id AND s.log_index <= r.last_index
                   OR s.log_id = -r.log_id AND s.log_index < r.last_index)
            ORDER BY coalesce(s.project_number, hashtext(s.project_id)), s.log_id, s.log_index >> 4, s.log_index
            LIMIT p_max - v_made) s
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

CREATE OR REPLACE FUNCTION count_metadata_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO metadata_change (project_id, changes)
    SELECT p.id, count(*) FROM changed c CROSS JOIN LATERAL (
      SELECT coalesce(c.project_id, (SELECT n.project_id FROM submission_name n WHERE n.number = c.project_number)) AS id) p
    GROUP BY p.id ORDER BY p.id
    ON CONFLICT (project_id) DO UPDATE SET changes = metadata_change.changes + excluded.changes;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION note_metadata_changes() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  INSERT INTO export_change (log_id, first_index, end_index, project_id)
    SELECT c.log_id, c.log_index, c.log_index + 1,
           coalesce(c.project_id, (SELECT n.project_id FROM submission_name n WHERE n.number = c.project_number))
    FROM changed c;
  RETURN NULL;
END $$;

-- A new database has no processes of the version before.
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM log) THEN
    DROP INDEX IF EXISTS submission_of_project, submission_of_schema, submission_by_build, submission_by_build_and_schema;
  END IF;
END $$;

-- Outside the transaction:

ALTER TABLE submission VALIDATE CONSTRAINT submission_named;
-- Each index in each partition, while others write. An attempt that failed leaves an invalid index.
SELECT made.statement
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
CROSS JOIN submission_partition p
CROSS JOIN LATERAL (SELECT replace(c.relname, 'submission', p.name) AS name) part
CROSS JOIN LATERAL (VALUES
  (1, format('DROP INDEX CONCURRENTLY IF EXISTS %I', part.name)),
  (2, regexp_replace(pg_get_indexdef(c.oid), '^CREATE INDEX \S+ ON ONLY \S+ ',
                     format('CREATE INDEX CONCURRENTLY %I ON %I ', part.name, p.name))),
  (3, format('ALTER INDEX %I ATTACH PARTITION %I', c.relname, part.name))
) made(step, statement)
WHERE i.indrelid = 'submission'::regclass AND NOT i.indisvalid AND NOT EXISTS (
  SELECT FROM pg_inherits h JOIN pg_index x ON x.indexrelid = h.inhrelid
  WHERE h.inhparent = c.oid AND x.indrelid = to_regclass(p.name))
ORDER BY c.relname, p.name, made.step;
-- The planner's statistics of all.
ANALYZE submission;
UPDATE submission_numbering
SET since = clock_timestamp() + CASE WHEN EXISTS (SELECT FROM log) THEN interval '1 day' ELSE interval '0' END
