-- Finds leaves by the hash of their artifact. One index with a random key would halve the rate of inserts once it is
-- larger than memory, so the index is written behind the log, in order: sorted runs, each of a range of the log, of
-- which sixteen are merged into one (store/artifacts/). Current runs cover the log from 0 without a gap or an overlap.
-- `merged_through` is how far a run that is not current yet has been merged.
CREATE TABLE artifact_run (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  log_id integer NOT NULL REFERENCES log,
  level smallint NOT NULL,
  first_index bigint NOT NULL,
  end_index bigint NOT NULL,
  is_current boolean NOT NULL,
  merged_through bytea NOT NULL DEFAULT '',
  CHECK (end_index > first_index)
);
CREATE UNIQUE INDEX artifact_run_current ON artifact_run (log_id, end_index) WHERE is_current;
CREATE UNIQUE INDEX artifact_run_merging ON artifact_run (log_id) WHERE NOT is_current;

-- Consecutive entries of a run, 16 bytes each, in the order of their bytes; few enough to stay in the row.
CREATE TABLE artifact_chunk (
  run_id bigint NOT NULL REFERENCES artifact_run,
  first_entry bytea NOT NULL,
  entries bytea NOT NULL,
  PRIMARY KEY (run_id, first_entry)
);
ALTER TABLE artifact_chunk ALTER COLUMN entries SET STORAGE PLAIN;

CREATE FUNCTION artifact_entry(p_artifact_sha256 bytea, p_project_id text, p_log_index bigint) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
  SELECT substr(p_artifact_sha256, 1, 7) || substr(sha256(p_project_id::bytea), 1, 4)
         || substr(int8send(p_log_index), 4)
$$;
COMMENT ON FUNCTION artifact_entry IS
'Returns the index entry of a leaf: 7 bytes of the artifact''s hash, 4 of the SHA-256 of the project''s id, 5 of the log index.
Locks: none.';

CREATE FUNCTION artifact_parts(p_log_id integer, p_first bigint, p_end bigint)
RETURNS TABLE (run_id bigint, first_index bigint, end_index bigint) LANGUAGE sql STABLE ROWS 30 AS $$
  WITH indexed AS (
    SELECT coalesce((SELECT r.end_index FROM artifact_run r WHERE r.log_id = p_log_id AND r.is_current
                     ORDER BY r.end_index DESC LIMIT 1), 0) AS size
  )
  SELECT NULL::bigint, greatest(p_first, i.size), p_end FROM indexed i WHERE i.size < p_end
  UNION ALL
  SELECT r.id, greatest(p_first, r.first_index), least(p_end, r.end_index) FROM artifact_run r
  WHERE r.log_id = p_log_id AND r.is_current AND r.end_index > p_first AND r.first_index < p_end
$$;
COMMENT ON FUNCTION artifact_parts IS
'Splits a range of a log into the parts of the runs that index it, and the part that no run indexes, with null for the run.
Locks: none.';

CREATE FUNCTION artifact_run_leaves(p_run_id bigint, p_low bytea, p_high bytea, p_limit integer)
RETURNS SETOF bigint LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
  v_left integer := p_limit;
  v_chunk record;
  v_entry bytea;
  v_position integer;
  v_above integer;
BEGIN
  SELECT c.first_entry, c.entries INTO v_chunk FROM artifact_chunk c
  WHERE c.run_id = p_run_id AND c.first_entry <= p_high ORDER BY c.first_entry DESC LIMIT 1;
  WHILE FOUND LOOP
    v_position := 0;
    v_above := octet_length(v_chunk.entries) / 16;
    WHILE v_position < v_above LOOP
      IF substr(v_chunk.entries, (v_position + v_above) / 2 * 16 + 1, 16) <= p_high THEN
        v_position := (v_position + v_above) / 2 + 1;
      ELSE
        v_above := (v_position + v_above) / 2;
      END IF;
    END LOOP;
    FOR v_number IN REVERSE v_position - 1 .. 0 LOOP
      v_entry := substr(v_chunk.entries, v_number * 16 + 1, 16);
      IF v_entry < p_low OR v_left = 0 THEN
        RETURN;
      END IF;
      RETURN NEXT ('x' || encode(substr(v_entry, 12), 'hex'))::bit(40)::bigint;
      v_left := v_left - 1;
    END LOOP;
    SELECT c.first_entry, c.entries INTO v_chunk FROM artifact_chunk c
    WHERE c.run_id = p_run_id AND c.first_entry < v_chunk.first_entry ORDER BY c.first_entry DESC LIMIT 1;
  END LOOP;
END $$;
COMMENT ON FUNCTION artifact_run_leaves IS
'Returns the log indexes of the entries of a run from p_low to p_high, both of one project and artifact: the newest p_limit, newest first.
Locks: none.';

CREATE FUNCTION artifact_rows(
  p_run_id bigint, p_log_id integer, p_first bigint, p_end bigint, p_project_id text, p_artifact_sha256 bytea,
  p_limit integer
) RETURNS TABLE (log_index bigint, is_artifact boolean, schema text, submitted_at timestamptz)
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
BEGIN
  IF p_run_id IS NULL THEN
    RETURN QUERY
      SELECT s.log_index, s.artifact_sha256 = p_artifact_sha256, s.schema, s.submitted_at FROM submission s
      WHERE (s.project_id, s.log_id, s.log_index) >= (p_project_id, p_log_id, p_first)
        AND (s.project_id, s.log_id, s.log_index) <= (p_project_id, p_log_id, p_end - 1)
      ORDER BY s.project_id DESC, s.log_id DESC, s.log_index DESC LIMIT p_limit;
  ELSE
    RETURN QUERY
      SELECT l.leaf, s.artifact_sha256 = p_artifact_sha256 AND s.project_id = p_project_id, s.schema, s.submitted_at
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

CREATE FUNCTION find_artifact(
  p_project_id text, p_artifact_sha256 bytea, p_schema text, p_status smallint,
  p_after timestamptz, p_before timestamptz, p_log_ids integer[], p_ends bigint[], p_limit integer, p_most integer
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
           AND v_row.submitted_at < coalesce(p_before, 'infinity') THEN
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

-- Whether strangers find the project's bundles by the hash of an artifact; null: as PUBLIC_LOOKUP says.
ALTER TABLE project ADD COLUMN public_lookup boolean;
CREATE INDEX project_by_entry ON project ((substr(sha256(id::bytea), 1, 4)));

CREATE FUNCTION artifact_projects(p_artifact_sha256 bytea, p_most integer) RETURNS TABLE (project_key bytea)
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
      SELECT s.project_id, s.artifact_sha256 FROM submission s WHERE s.log_id = l.id AND s.log_index >= indexed.size
      ORDER BY s.log_index DESC LIMIT p_most
    ) s
    WHERE s.artifact_sha256 = p_artifact_sha256;
END $$;
COMMENT ON FUNCTION artifact_projects IS
'Returns the keys in index entries of the projects that have attested an artifact, some of them repeatedly. Of the leaves of each log that no run has, looks at the newest p_most.
Locks: none.';

CREATE FUNCTION find_public_artifact(p_artifact_sha256 bytea, p_default boolean, p_limit integer, p_most integer)
RETURNS TABLE (
  id text, project_id text, environment smallint, log_id integer, log_index bigint, submitted_at timestamptz,
  is_match boolean
) LANGUAGE plpgsql STABLE ROWS 50 SET enable_seqscan = off AS $$
BEGIN
  RETURN QUERY
    SELECT s.id, p.id, l.environment, f.log_id, f.log_index, s.submitted_at, f.is_match
    FROM (SELECT DISTINCT a.project_key FROM artifact_projects(p_artifact_sha256, p_most) a) k
    JOIN project p ON substr(sha256(p.id::bytea), 1, 4) = k.project_key AND coalesce(p.public_lookup, p_default)
    CROSS JOIN log l
    CROSS JOIN unnest('{2,3}'::smallint[]) AS settled(status)
    CROSS JOIN LATERAL find_artifact(p.id, p_artifact_sha256, NULL, settled.status, NULL, NULL, ARRAY[l.id],
                                     ARRAY[9223372036854775807], p_limit, p_most) f
    CROSS JOIN LATERAL (
      SELECT * FROM submission s WHERE s.log_id = f.log_id AND s.log_index = f.log_index LIMIT 1
    ) s
    ORDER BY f.is_match, s.submitted_at DESC, s.id DESC LIMIT p_limit;
END $$;
COMMENT ON FUNCTION find_public_artifact IS
'Finds the newest p_limit witnessed and partial submissions of an artifact, newest first, of the projects that are looked up in public. Rows whose is_match is false come first: there the search looked at p_most leaves and stopped.
Locks: none.';
