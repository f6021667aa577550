-- Number of corrections and redactions of a project's submissions, which validates cached submissions of the project. A
-- trigger counts, so changes by processes of the previous version count too. The row stays locked until the change
-- commits, so a reader of a number sees every change up to it.
CREATE TABLE metadata_change (
  project_id text COLLATE "C" PRIMARY KEY REFERENCES project,
  changes bigint NOT NULL
);

CREATE FUNCTION count_metadata_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO metadata_change (project_id, changes)
    SELECT c.project_id, count(*) FROM changed c GROUP BY c.project_id ORDER BY c.project_id
    ON CONFLICT (project_id) DO UPDATE SET changes = metadata_change.changes + excluded.changes;
  RETURN NULL;
END $$;

CREATE TRIGGER submission_change AFTER UPDATE ON submission REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION count_metadata_changes();
