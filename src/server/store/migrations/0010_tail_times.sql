-- Bounds of submission times for every 1024 unsealed leaves; `log_time` has those of sealed leaves. While no worker
-- seals, the tail grows to millions of rows, which a list by time would have to scan. API processes write it
-- periodically (store/submissions/tail-times.ts), never in a submission's transaction. Rows cover the tail without gaps
-- from the sealed size at the time of writing; rows below the present sealed size are obsolete.
CREATE TABLE tail_time (
  log_id integer NOT NULL,
  end_index bigint NOT NULL,
  first_index bigint NOT NULL,
  earliest timestamptz NOT NULL,
  latest timestamptz NOT NULL,
  PRIMARY KEY (log_id, end_index)
);

-- Sealed leaves as before; then the range of the tail's bounds, and the leaves after the last bound.
CREATE OR REPLACE FUNCTION time_stretches(p_log_id integer, p_after timestamptz, p_before timestamptz, p_end bigint)
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
  ), noted AS (
    SELECT sealed.size, greatest(sealed.size, coalesce((
      SELECT t.end_index FROM tail_time t WHERE t.log_id = p_log_id ORDER BY t.end_index DESC LIMIT 1), 0)) AS end_index
    FROM sealed
  ), tail AS (
    SELECT noted.end_index AS noted_end,
      CASE WHEN p_after IS NULL THEN noted.size ELSE coalesce((
        SELECT greatest(t.first_index, noted.size) FROM tail_time t
        WHERE t.log_id = p_log_id AND t.end_index > noted.size AND t.latest > p_after
        ORDER BY t.end_index LIMIT 1), noted.end_index) END AS first_index,
      CASE WHEN p_before IS NULL THEN noted.end_index ELSE coalesce((
        SELECT t.end_index FROM tail_time t
        WHERE t.log_id = p_log_id AND t.end_index > noted.size AND t.earliest < p_before
        ORDER BY t.end_index DESC LIMIT 1), noted.size) END AS end_index
    FROM noted
  )
  SELECT b.first_index, least(b.end_index, p_end) FROM bound b WHERE b.first_index < least(b.end_index, p_end)
  UNION ALL
  SELECT t.first_index, least(t.end_index, p_end) FROM tail t WHERE t.first_index < least(t.end_index, p_end)
  UNION ALL
  SELECT t.noted_end, p_end FROM tail t WHERE t.noted_end < p_end
$$;
