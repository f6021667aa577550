-- Statistics hold values of a column, and outlive their rows until the next ANALYZE: redaction would miss that copy.
-- Setting the type, which it is already, drops the statistics there are.
ALTER TABLE submission
  ALTER COLUMN metadata TYPE text, ALTER COLUMN metadata SET STATISTICS 0,
  ALTER COLUMN metadata_errors TYPE text, ALTER COLUMN metadata_errors SET STATISTICS 0,
  ALTER COLUMN attested_metadata TYPE text, ALTER COLUMN attested_metadata SET STATISTICS 0,
  ALTER COLUMN salt TYPE bytea, ALTER COLUMN salt SET STATISTICS 0;

-- What was done, by whom and when. Written in the transaction that does it, and never changed. `project_id` is NULL
-- for what concerns the whole installation. No foreign keys: an entry outlives what it speaks of. `detail` holds no
-- metadata and no secret; `at` is as exact as it is shown. `actor_kind` and `action` are the numbers of proto enums
-- (attestation.admin.v1).
CREATE TABLE audit_entry (
  id text COLLATE "C" PRIMARY KEY,
  project_id text COLLATE "C",
  at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  actor_kind smallint NOT NULL,
  actor_id text COLLATE "C" NOT NULL,
  action smallint NOT NULL,
  resource_id text COLLATE "C" NOT NULL,
  request_id text COLLATE "C",
  detail jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX audit_entry_by_project ON audit_entry (project_id, id);
CREATE INDEX audit_entry_by_resource ON audit_entry (resource_id, id);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'ATAPP';
END $$;
CREATE TRIGGER audit_entry_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entry
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
