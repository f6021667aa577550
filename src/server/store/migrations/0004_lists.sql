-- Indexes for lists: the cost of a page does not depend on the size of the tables. No index has a random key.

-- No other index starts with their first columns, so the planner cannot choose another index and sort. (A correction
-- may change a row's schema without changing `batch_content`.)
CREATE INDEX submission_by_schema ON submission (schema, project_id, log_id, log_index);
CREATE INDEX batch_by_status ON batch (status, log_id, tree_size);

-- Bounds of submission times for ranges of at most 256 leaves of a batch. Log order is only nearly time order, because
-- clocks differ and writes overlap; these bounds are exact and non-decreasing along the log: `latest` is the maximum of
-- all leaves up to the range's end, `earliest` the minimum of all sealed leaves from its start.
CREATE TABLE log_time (
  log_id integer NOT NULL,
  end_index bigint NOT NULL,
  first_index bigint NOT NULL,
  tree_size bigint NOT NULL,
  earliest timestamptz NOT NULL,
  latest timestamptz NOT NULL,
  PRIMARY KEY (log_id, end_index),
  FOREIGN KEY (log_id, tree_size) REFERENCES batch ON DELETE CASCADE
);
CREATE INDEX log_time_by_earliest ON log_time (log_id, earliest, end_index);
CREATE INDEX log_time_by_latest ON log_time (log_id, latest, end_index);

-- A trigger, because workers of the previous version seal batches without writing times.
CREATE FUNCTION add_log_times() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_latest timestamptz := coalesce((SELECT t.latest FROM log_time t WHERE t.log_id = NEW.log_id
                                    ORDER BY t.end_index DESC LIMIT 1), '-infinity');
  v_earliest timestamptz;
BEGIN
  INSERT INTO log_time (log_id, end_index, first_index, tree_size, earliest, latest)
  SELECT NEW.log_id, max(log_index) + 1, min(log_index), NEW.tree_size,
         min(min(submitted_at)) OVER (ORDER BY min(log_index) DESC),
         greatest(v_latest, max(max(submitted_at)) OVER (ORDER BY min(log_index)))
  FROM submission
  WHERE log_id = NEW.log_id AND log_index >= NEW.first_index AND log_index < NEW.tree_size
  GROUP BY (log_index - NEW.first_index) / 256;
  SELECT min(earliest) INTO v_earliest FROM log_time WHERE log_id = NEW.log_id AND end_index > NEW.first_index;
  UPDATE log_time SET earliest = v_earliest
  WHERE log_id = NEW.log_id AND earliest > v_earliest AND end_index <= NEW.first_index;
  RETURN NULL;
END $$;

CREATE TRIGGER batch_times AFTER INSERT ON batch FOR EACH ROW EXECUTE FUNCTION add_log_times();

INSERT INTO log_time (log_id, end_index, first_index, tree_size, earliest, latest)
SELECT s.log_id, max(s.log_index) + 1, min(s.log_index), b.tree_size,
       min(min(s.submitted_at)) OVER (PARTITION BY s.log_id ORDER BY min(s.log_index) DESC),
       max(max(s.submitted_at)) OVER (PARTITION BY s.log_id ORDER BY min(s.log_index))
FROM batch b
JOIN submission s ON s.log_id = b.log_id AND s.log_index >= b.first_index AND s.log_index < b.tree_size
GROUP BY s.log_id, b.tree_size, (s.log_index - b.first_index) / 256;

-- Ranges of a log below `p_end` whose batches have a status, newest first. They are few, because a batch's status
-- depends on the tree size that each witness covers. Row comparisons leave the planner a single index to choose, even
-- if its statistics underestimate a rare status.
CREATE FUNCTION status_stretches(p_log_id integer, p_status smallint, p_end bigint)
RETURNS TABLE (first_index bigint, end_index bigint) LANGUAGE sql STABLE ROWS 2 AS $$
  WITH RECURSIVE stretch AS (
    SELECT p_end AS first_index, p_end AS end_index
    UNION ALL
    SELECT coalesce(below.tree_size, 0), least(top.tree_size, stretch.first_index)
    FROM stretch
    CROSS JOIN LATERAL (
      SELECT coalesce(min(c.tree_size), 9223372036854775807) AS tree_size FROM (
        SELECT b.tree_size FROM batch b WHERE b.log_id = p_log_id AND b.tree_size >= stretch.first_index
        ORDER BY b.tree_size LIMIT 1) c
    ) containing
    CROSS JOIN LATERAL (
      SELECT b.tree_size FROM batch b
      WHERE (b.status, b.log_id, b.tree_size) >= (p_status, p_log_id, 0)
        AND (b.status, b.log_id, b.tree_size) <= (p_status, p_log_id, containing.tree_size)
      ORDER BY b.status DESC, b.log_id DESC, b.tree_size DESC LIMIT 1
    ) top
    CROSS JOIN LATERAL (
      SELECT max(o.tree_size) AS tree_size
      FROM unnest('{1,2,3,4}'::smallint[]) other(status)
      CROSS JOIN LATERAL (
        SELECT b.tree_size FROM batch b
        WHERE (b.status, b.log_id, b.tree_size) >= (other.status, p_log_id, 0)
          AND (b.status, b.log_id, b.tree_size) <= (other.status, p_log_id, top.tree_size - 1)
        ORDER BY b.status DESC, b.log_id DESC, b.tree_size DESC LIMIT 1
      ) o
      WHERE other.status <> p_status
    ) below
    WHERE stretch.first_index > 0
  )
  SELECT stretch.first_index, stretch.end_index FROM stretch WHERE stretch.first_index < stretch.end_index
$$;

-- Ranges of a log below `p_end` that contain every submission after `p_after` and before `p_before`; either may be
-- NULL. Unsealed leaves are always included.
CREATE FUNCTION time_stretches(p_log_id integer, p_after timestamptz, p_before timestamptz, p_end bigint)
RETURNS TABLE (first_index bigint, end_index bigint) LANGUAGE sql STABLE ROWS 2 AS $$
  WITH sealed AS (
    SELECT coalesce((SELECT t.end_index FROM log_time t WHERE t.log_id = p_log_id
                     ORDER BY t.end_index DESC LIMIT 1), 0) AS size
  ), bound AS (
    SELECT sealed.size,
      CASE WHEN p_after IS NULL THEN 0 ELSE coalesce((
        SELECT t.first_index FROM log_time t
        WHERE t.log_id = p_log_id AND t.latest > p_after ORDER BY t.latest, t.end_index LIMIT 1), sealed.size) END AS first_index,
      CASE WHEN p_before IS NULL THEN sealed.size ELSE coalesce((
        SELECT t.end_index FROM log_time t
        WHERE t.log_id = p_log_id AND t.earliest < p_before ORDER BY t.earliest DESC, t.end_index DESC LIMIT 1), 0) END AS end_index
    FROM sealed
  )
  SELECT b.first_index, least(b.end_index, p_end) FROM bound b WHERE b.first_index < least(b.end_index, p_end)
  UNION ALL
  SELECT b.size, p_end FROM bound b WHERE b.size < p_end
$$;

-- Ranges of a log below `p_end` that contain every leaf with this submission status (NULL: any) and a time in this
-- window; disjoint, unordered. All leaves in them have the status, and nearly all have a time in the window.
CREATE FUNCTION leaf_stretches(
  p_log_id integer, p_status smallint, p_after timestamptz, p_before timestamptz, p_end bigint
) RETURNS TABLE (first_index bigint, end_index bigint) LANGUAGE sql STABLE ROWS 2 AS $$
  SELECT greatest(s.first_index, t.first_index), least(s.end_index, t.end_index)
  FROM (
    SELECT 0::bigint AS first_index, p_end AS end_index WHERE p_status IS NULL
    UNION ALL
    SELECT * FROM status_stretches(p_log_id, p_status, p_end) WHERE p_status IS NOT NULL
    UNION ALL
    -- What is not sealed is queued, as what is sealed and has not settled.
    SELECT sealed.size, p_end FROM (
      SELECT coalesce((SELECT b.tree_size FROM batch b WHERE b.log_id = p_log_id
                       ORDER BY b.tree_size DESC LIMIT 1), 0) AS size) sealed
    WHERE p_status = 1 AND sealed.size < p_end
  ) s
  CROSS JOIN time_stretches(p_log_id, p_after, p_before, p_end) t
  WHERE s.first_index < t.end_index AND t.first_index < s.end_index
$$;
