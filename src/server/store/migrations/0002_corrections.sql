-- Statistics contain column values until the next ANALYZE, so redacted values would remain there. Setting a column's
-- present type again drops its existing statistics.
ALTER TABLE submission
  ALTER COLUMN metadata TYPE text, ALTER COLUMN metadata SET STATISTICS 0,
  ALTER COLUMN metadata_errors TYPE text, ALTER COLUMN metadata_errors SET STATISTICS 0,
  ALTER COLUMN attested_metadata TYPE text, ALTER COLUMN attested_metadata SET STATISTICS 0,
  ALTER COLUMN salt TYPE bytea, ALTER COLUMN salt SET STATISTICS 0;

-- Audit log. An entry is written in the transaction of its action and never changes. `project_id` is NULL for actions
-- on the whole installation. No foreign keys: entries outlive their resources. `detail` contains no metadata and no
-- secrets; `at` has the precision that is shown. `actor_kind` and `action` are numbers of proto enums
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
