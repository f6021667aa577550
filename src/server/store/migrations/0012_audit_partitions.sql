-- The audit log, partitioned by month: expired entries are dropped as whole tables, and no entry can be changed or
-- deleted. Ids start with their time, so a month is a range of ids. The default partition has the existing entries,
-- those of this month and those of months without a partition.
ALTER TABLE audit_entry RENAME TO audit_entry_default;
ALTER TABLE audit_entry_default RENAME CONSTRAINT audit_entry_pkey TO audit_entry_default_pkey;
ALTER INDEX audit_entry_by_project RENAME TO audit_entry_default_by_project;
ALTER INDEX audit_entry_by_resource RENAME TO audit_entry_default_by_resource;

CREATE TABLE audit_entry (LIKE audit_entry_default INCLUDING DEFAULTS) PARTITION BY RANGE (id);
ALTER TABLE audit_entry ADD CONSTRAINT audit_entry_pkey PRIMARY KEY (id);
CREATE INDEX audit_entry_by_project ON audit_entry (project_id, id);
CREATE INDEX audit_entry_by_resource ON audit_entry (resource_id, id);
ALTER TABLE audit_entry ATTACH PARTITION audit_entry_default DEFAULT;
CREATE TRIGGER audit_entry_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entry
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The prefix of the ids of a time's entries.
CREATE FUNCTION audit_id_at(p_at timestamptz) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT 'aud_' || string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ',
    ((floor(extract(epoch FROM p_at) * 1000)::bigint >> (5 * n)) & 31)::int + 1, 1), '' ORDER BY n DESC)
  FROM generate_series(0, 9) n
$$;

CREATE FUNCTION add_audit_partition(p_name text, p_bounds text) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  EXECUTE format('CREATE TABLE %I PARTITION OF audit_entry %s', p_name, p_bounds);
  EXECUTE format('CREATE TRIGGER audit_entry_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %I
                  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', p_name);
END $$;

-- Drops partitions whose entries are all older than `p_retention_ms` at `p_now` and adds those of the next three
-- months, except months with entries in the default partition. Returns at once if another call runs. Waits at most two
-- seconds for readers and writers of entries.
CREATE FUNCTION keep_audit_partitions(p_retention_ms bigint, p_now timestamptz) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET lock_timeout = '2s' AS $$
DECLARE
  v_oldest text COLLATE "C" := audit_id_at(p_now - p_retention_ms * interval '1 millisecond');
  v_month timestamptz;
  v_name text;
  r record;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended('attestation-service audit', 0)) THEN RETURN; END IF;
  FOR r IN
    SELECT c.relname AS name, substring(pg_get_expr(c.relpartbound, c.oid) FROM $re$TO \('([^']+)'\)$re$) AS until
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'audit_entry'::regclass
  LOOP
    IF r.until COLLATE "C" <= v_oldest THEN
      EXECUTE format('DROP TABLE %I', r.name);
    END IF;
  END LOOP;
  IF (SELECT max(d.id) FROM audit_entry_default d) < v_oldest THEN
    DROP TABLE audit_entry_default;
    PERFORM add_audit_partition('audit_entry_default', 'DEFAULT');
  END IF;
  FOR n IN 1..3 LOOP
    v_month := (date_trunc('month', p_now AT TIME ZONE 'UTC') + n * interval '1 month') AT TIME ZONE 'UTC';
    v_name := 'audit_entry_' || to_char(v_month AT TIME ZONE 'UTC', 'YYYYMM');
    CONTINUE WHEN to_regclass(v_name) IS NOT NULL;
    BEGIN
      PERFORM add_audit_partition(v_name, format('FOR VALUES FROM (%L) TO (%L)', audit_id_at(v_month),
        audit_id_at((v_month AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC')));
    EXCEPTION WHEN check_violation THEN NULL;
    END;
  END LOOP;
END $$;
