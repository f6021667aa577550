-- Submissions that are archived outside the database, and whose rows are gone. Processes of the version before take them for
-- missing: replace all before the first are removed.

-- The leaves of a log below this size have no rows any more: a multiple of 256, or the whole of a log that has ended. Tiles and
-- batches stay.
ALTER TABLE log ADD COLUMN archived_size bigint NOT NULL DEFAULT 0 CHECK (archived_size >= 0);

-- The objects of archives that have what was removed. owners: of each of the batch's leaves in order four bytes of
-- SHA-256 over its submission's id, a line break and its project's id.
CREATE TABLE archived_object (
  log_id integer NOT NULL REFERENCES log,
  tree_size bigint NOT NULL,
  first_id text COLLATE "C" NOT NULL,
  last_id text COLLATE "C" NOT NULL,
  place text NOT NULL,
  sha256 bytea NOT NULL,
  owners bytea NOT NULL,
  PRIMARY KEY (log_id, tree_size)
);
CREATE INDEX archived_object_by_id ON archived_object (log_id, first_id);

CREATE FUNCTION remove_submissions(p_log_id integer, p_first bigint, p_end bigint)
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $function$
BEGIN
  DELETE FROM signature_stamp WHERE log_id = p_log_id AND log_index >= p_first AND log_index < p_end;
  DELETE FROM submission_statement WHERE log_id = p_log_id AND log_index >= p_first AND log_index < p_end;
  DELETE FROM submission WHERE log_id = p_log_id AND log_index >= p_first AND log_index < p_end;
END $function$;
COMMENT ON FUNCTION remove_submissions IS
'Removes the rows of the leaves [p_first, p_end) of a log, which an archive has.
Locks: the rows that it removes.';

-- The next index, from the newest leaves; of a log whose rows are all removed, what is archived.
CREATE OR REPLACE FUNCTION allocate_log_indexes(p_log_id integer, p_outcome submission_outcome[], INOUT p_log_index bigint[])
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  c_write_lock CONSTANT integer := 1; -- LogLock.WRITE
  v_frozen_at timestamptz;
  v_archived bigint;
  v_sealed bigint;
  v_next bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(c_write_lock, p_log_id);
  SELECT l.frozen_at, l.archived_size INTO STRICT v_frozen_at, v_archived FROM log l WHERE l.id = p_log_id;
  IF v_frozen_at IS NOT NULL THEN
    RAISE EXCEPTION 'log % is frozen', p_log_id USING ERRCODE = 'ATFRZ';
  END IF;
  SELECT coalesce(max(b.tree_size) - 1, 0) INTO v_sealed FROM batch b WHERE b.log_id = p_log_id;
  SELECT max(s.log_index) + 1 INTO v_next FROM submission s WHERE s.log_id = p_log_id AND s.log_index >= v_sealed;
  IF v_next IS NULL THEN
    SELECT greatest(max(s.log_index) + 1, v_archived) INTO v_next FROM submission s WHERE s.log_id = p_log_id;
  END IF;
  FOR v_n IN 1..cardinality(p_outcome) LOOP
    IF p_outcome[v_n] IS NULL THEN
      p_log_index[v_n] := v_next;
      v_next := v_next + 1;
    END IF;
  END LOOP;
END $$;
