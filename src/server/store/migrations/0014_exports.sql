-- A continuous export of a project's submissions in one environment. `destination` is the proto's JSON without secrets;
-- `secrets` is the encrypted JSON of its secret members, empty once stopped. `schema` null exports all. Enumerations
-- are proto numbers: kind, compression, start, status (1 active, 2 failing, 3 stopped). `lease` counts up and fences
-- writers.
CREATE TABLE export (
  id text COLLATE "C" PRIMARY KEY,
  number bigint GENERATED ALWAYS AS IDENTITY,
  project_id text COLLATE "C" NOT NULL REFERENCES project,
  environment smallint NOT NULL,
  destination jsonb NOT NULL,
  secrets bytea NOT NULL,
  schema text,
  compression smallint NOT NULL,
  start smallint NOT NULL,
  status smallint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  stopped_at timestamptz,
  failures integer NOT NULL DEFAULT 0,
  failing_since timestamptz,
  last_error text,
  due_at timestamptz,
  lease bigint NOT NULL DEFAULT 0,
  leased_until timestamptz
) WITH (fillfactor=70);
CREATE INDEX export_by_project ON export (project_id, environment, number);
CREATE INDEX export_due ON export (due_at) WHERE due_at IS NOT NULL;

-- Progress of an export in a log. Every matching batch after `start_size` and up to `through_size` has a shipment;
-- so has every one up to `backfill_size`, which ends at `start_size`.
CREATE TABLE export_cursor (
  export_id text COLLATE "C" NOT NULL REFERENCES export,
  log_id integer NOT NULL REFERENCES log,
  start_size bigint NOT NULL,
  through_size bigint NOT NULL,
  backfill_size bigint NOT NULL,
  PRIMARY KEY (export_id, log_id)
);

-- One object of an export: a batch. The object is current if `shipped_revision` is `wanted_revision`. `priority` orders
-- those that are not: 1 after a change of metadata, 2 before the first shipment, 3 after later evidence.
CREATE TABLE export_shipment (
  export_id text COLLATE "C" NOT NULL REFERENCES export,
  log_id integer NOT NULL,
  tree_size bigint NOT NULL,
  batch_id text COLLATE "C" NOT NULL,
  day date NOT NULL,
  wanted_revision bigint NOT NULL DEFAULT 1,
  shipped_revision bigint NOT NULL DEFAULT 0,
  priority smallint NOT NULL DEFAULT 2,
  attempts integer NOT NULL DEFAULT 0,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  bytes bigint NOT NULL DEFAULT 0,
  submissions integer NOT NULL DEFAULT 0,
  sha256 bytea,
  error text,
  PRIMARY KEY (export_id, log_id, tree_size),
  FOREIGN KEY (log_id, tree_size) REFERENCES batch
) WITH (fillfactor=80);
CREATE INDEX export_shipment_pending ON export_shipment (export_id, priority, log_id, tree_size)
  WHERE wanted_revision > shipped_revision;
CREATE INDEX export_shipment_by_time ON export_shipment (export_id, at);
CREATE INDEX export_shipment_by_day ON export_shipment (export_id, day, log_id, tree_size);
CREATE INDEX export_shipment_by_batch ON export_shipment (log_id, tree_size);

-- The manifest of a day's objects. It is due at `due_at` if `wanted_revision` is above `shipped_revision`.
CREATE TABLE export_manifest (
  export_id text COLLATE "C" NOT NULL REFERENCES export,
  day date NOT NULL,
  wanted_revision bigint NOT NULL DEFAULT 1,
  shipped_revision bigint NOT NULL DEFAULT 0,
  is_complete boolean NOT NULL DEFAULT false,
  due_at timestamptz NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  bytes bigint NOT NULL DEFAULT 0,
  submissions integer NOT NULL DEFAULT 0,
  error text,
  PRIMARY KEY (export_id, day)
);
CREATE INDEX export_manifest_pending ON export_manifest (export_id, due_at)
  WHERE wanted_revision > shipped_revision;

-- Leaves `[first_index, end_index)` of a log whose exported lines may have changed: by evidence, for all projects, or
-- by a change of metadata, for `project_id`. A row is deleted once the shipments that it concerns are marked.
CREATE TABLE export_change (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  log_id integer NOT NULL,
  first_index bigint NOT NULL,
  end_index bigint NOT NULL,
  project_id text COLLATE "C"
);

-- Calls in progress under an idempotency key whose effect begins outside the database.
CREATE TABLE idempotency_lease (
  api_key_id text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  leased_until timestamptz NOT NULL,
  PRIMARY KEY (api_key_id, key)
);

-- Content of an event about an export: `export_id` and the event's data.
ALTER TABLE webhook_delivery ADD COLUMN export_id text COLLATE "C", ADD COLUMN detail text;

CREATE FUNCTION note_metadata_changes() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  INSERT INTO export_change (log_id, first_index, end_index, project_id)
    SELECT c.log_id, c.log_index, c.log_index + 1, c.project_id FROM changed c;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION note_metadata_changes() IS 'Records the leaves of changed submissions for exports.
Locks: none.';
CREATE TRIGGER submission_export AFTER UPDATE ON submission REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_metadata_changes();

CREATE FUNCTION note_evidence() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  INSERT INTO export_change (log_id, first_index, end_index)
    SELECT NEW.log_id, coalesce(max(e.tree_size), 0), NEW.tree_size FROM evidence e
    WHERE e.log_id = NEW.log_id AND e.witness = NEW.witness AND e.tree_size < NEW.tree_size;
  RETURN NULL;
END $$;
COMMENT ON FUNCTION note_evidence() IS 'Records for exports the leaves that new evidence covers and earlier evidence of its witness does not.
Locks: none.';
CREATE TRIGGER evidence_export AFTER INSERT ON evidence FOR EACH ROW EXECUTE FUNCTION note_evidence();
