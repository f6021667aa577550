-- Enumerations are stored as the numbers of their proto enums (environment, submission and batch status, metadata
-- state, witness kind, rate bucket).

CREATE TABLE project (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- A key is looked up by its HMAC; the key itself is shown once and never stored.
CREATE TABLE api_key (
  id text COLLATE "C" PRIMARY KEY,
  project_id text COLLATE "C" NOT NULL REFERENCES project,
  environment smallint NOT NULL,
  name text NOT NULL,
  prefix text NOT NULL,
  last4 text NOT NULL,
  hmac bytea NOT NULL UNIQUE,
  scopes text[] NOT NULL,
  submissions_per_second bigint NOT NULL DEFAULT 60,
  submissions_per_hour bigint NOT NULL DEFAULT 10000,
  submissions_per_day bigint NOT NULL DEFAULT 100000,
  reads_per_second bigint NOT NULL DEFAULT 600,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);
CREATE INDEX api_key_by_project ON api_key (project_id, id);

-- Keys that sign statements. Retired keys are kept because verifiers need them.
CREATE TABLE dsse_key (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  environment smallint NOT NULL,
  spki bytea NOT NULL UNIQUE,
  valid_from timestamptz NOT NULL DEFAULT now(),
  valid_to timestamptz
);

-- One log per environment and epoch; only the newest epoch is written. A frozen log accepts no writes and signs
-- nothing.
CREATE TABLE log (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  environment smallint NOT NULL,
  epoch integer NOT NULL,
  origin text NOT NULL UNIQUE,
  public_key bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  frozen_at timestamptz,
  frozen_reason text,
  UNIQUE (environment, epoch)
);

-- One leaf, written once at its final index. Later only redaction and correction update it, and only its metadata.
-- `metadata` is JCS text. `attested_schema` and `attested_metadata` are set by a correction.
CREATE TABLE submission (
  log_id integer NOT NULL,
  log_index bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  project_id text COLLATE "C" NOT NULL,
  submitted_at timestamptz NOT NULL,
  artifact_sha256 bytea NOT NULL,
  schema text NOT NULL,
  metadata text,
  metadata_state smallint NOT NULL,
  metadata_errors text,
  attested_schema text,
  attested_metadata text,
  salt bytea,
  commitment bytea NOT NULL,
  statement_version smallint NOT NULL DEFAULT 1,
  dsse_key_id integer NOT NULL,
  signature bytea NOT NULL,
  leaf_hash bytea NOT NULL,
  redacted_at timestamptz,
  PRIMARY KEY (log_id, log_index)
);
-- ULIDs increase with time, so inserts go to this index's rightmost page; a random key would halve the write rate.
CREATE UNIQUE INDEX submission_id ON submission (id);
CREATE INDEX submission_by_project ON submission (project_id, log_id, log_index);

-- The witnesses of a batch; a batch references the version it was sealed under.
-- `witnesses`: [{"name", "kind", "required"}].
CREATE TABLE policy (
  environment smallint NOT NULL,
  version integer NOT NULL,
  witnesses jsonb NOT NULL,
  deadline_ms bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (environment, version)
);

-- A range of a log, [first_index, tree_size), and the signed checkpoint at its end. Published and visible to readers
-- since `registered_at`, when its root was written to the register outside this database.
CREATE TABLE batch (
  log_id integer NOT NULL REFERENCES log,
  tree_size bigint NOT NULL,
  id text COLLATE "C" NOT NULL UNIQUE,
  first_index bigint NOT NULL,
  root_hash bytea NOT NULL,
  note text NOT NULL,
  policy_version integer NOT NULL,
  sealed_at timestamptz NOT NULL,
  deadline_at timestamptz NOT NULL,
  registered_at timestamptz,
  status smallint NOT NULL DEFAULT 1,
  witnessed_at timestamptz,
  PRIMARY KEY (log_id, tree_size),
  UNIQUE (log_id, first_index),
  CHECK (tree_size > first_index)
);
CREATE INDEX batch_unsettled ON batch (log_id, tree_size) WHERE status <> 2;
CREATE INDEX batch_unregistered ON batch (log_id, tree_size) WHERE registered_at IS NULL;

-- Number and index range of a batch's submissions by project and schema, so that lists, events and exports never scan
-- submissions.
CREATE TABLE batch_content (
  log_id integer NOT NULL,
  tree_size bigint NOT NULL,
  project_id text COLLATE "C" NOT NULL,
  schema text NOT NULL,
  submissions integer NOT NULL,
  first_index bigint NOT NULL,
  last_index bigint NOT NULL,
  PRIMARY KEY (project_id, log_id, tree_size, schema)
);

-- Status transitions of batches; a batch enters a status at most once.
CREATE TABLE batch_transition (
  log_id integer NOT NULL,
  tree_size bigint NOT NULL,
  status smallint NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (log_id, tree_size, status),
  FOREIGN KEY (log_id, tree_size) REFERENCES batch
);

-- C2SP tiles of height 8: up to 256 hashes of 32 bytes. A full tile never changes; a partial one only grows.
CREATE TABLE tile (
  log_id integer NOT NULL,
  level smallint NOT NULL,
  tile_index bigint NOT NULL,
  hashes bytea NOT NULL,
  PRIMARY KEY (log_id, level, tile_index)
);
-- Hashes do not compress.
ALTER TABLE tile ALTER COLUMN hashes SET STORAGE EXTERNAL;

-- Requests to one witness for one log. `attempt` is a fencing token: a worker with an older attempt changes nothing.
CREATE TABLE witness_state (
  log_id integer NOT NULL REFERENCES log,
  witness text COLLATE "C" NOT NULL,
  attempt bigint NOT NULL DEFAULT 0,
  leased_until timestamptz,
  next_attempt_at timestamptz NOT NULL DEFAULT now(),
  failures integer NOT NULL DEFAULT 0,
  last_failed_at timestamptz,
  last_error text,
  covers_tree_size bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (log_id, witness)
);

-- A witness's evidence for the checkpoint at `tree_size`; it covers every batch up to that size.
CREATE TABLE evidence (
  log_id integer NOT NULL REFERENCES log,
  witness text COLLATE "C" NOT NULL,
  tree_size bigint NOT NULL,
  kind smallint NOT NULL,
  evidence bytea NOT NULL,
  detail jsonb NOT NULL,
  landed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (log_id, witness, tree_size)
);

-- Certificate chains of time-stamping authorities, leaf first. Retired chains are kept because verifiers need them.
CREATE TABLE timestamp_authority (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL,
  url text NOT NULL,
  operator text NOT NULL,
  cert_chain_pem text[] NOT NULL,
  valid_from timestamptz NOT NULL DEFAULT now(),
  valid_to timestamptz
);
CREATE UNIQUE INDEX timestamp_authority_active ON timestamp_authority (name) WHERE valid_to IS NULL;

-- `request_hash` is an HMAC of the RPC's name and message; requests are never stored.
CREATE TABLE idempotency_key (
  api_key_id text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  request_hash bytea NOT NULL,
  resource_id text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (api_key_id, key)
);
CREATE INDEX idempotency_key_by_age ON idempotency_key (created_at);

-- Calls of a key in the second, hour and UTC day of `second` (seconds since the epoch), up to and including that
-- second. One row per second keeps chains of dead row versions short while a long-running snapshot prevents vacuum.
CREATE TABLE rate_counter (
  api_key_id text COLLATE "C" NOT NULL,
  bucket smallint NOT NULL,
  second bigint NOT NULL,
  n_second bigint NOT NULL,
  n_hour bigint NOT NULL,
  n_day bigint NOT NULL,
  PRIMARY KEY (api_key_id, bucket, second)
) WITH (fillfactor = 70);

-- Counts up to `p_wanted` calls of a key in one bucket within the limits of three windows; returns the number granted.
-- Locks the key until the caller's transaction ends, so the count is exact across processes. A NULL limit is no limit.
-- `left_ms`: remaining time of the window of `second`.
CREATE FUNCTION take_tokens(
  p_api_key_id text, p_bucket smallint, p_wanted bigint,
  p_limit_second bigint, p_limit_hour bigint, p_limit_day bigint,
  OUT granted bigint, OUT second bigint, OUT n_second bigint, OUT n_hour bigint, OUT n_day bigint, OUT left_ms bigint
) LANGUAGE plpgsql AS $$
DECLARE
  c rate_counter;
  v_now numeric;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(p_api_key_id, p_bucket));
  v_now := extract(epoch FROM clock_timestamp());
  second := floor(v_now);
  SELECT * INTO c FROM rate_counter r
    WHERE r.api_key_id = p_api_key_id AND r.bucket = p_bucket ORDER BY r.second DESC LIMIT 1;
  -- The clock may step back; the windows do not.
  second := greatest(second, coalesce(c.second, 0));
  left_ms := greatest(0, (second + 1 - v_now) * 1000);
  n_second := CASE WHEN c.second = second THEN c.n_second ELSE 0 END;
  n_hour := CASE WHEN c.second / 3600 = second / 3600 THEN c.n_hour ELSE 0 END;
  n_day := CASE WHEN c.second / 86400 = second / 86400 THEN c.n_day ELSE 0 END;
  granted := greatest(0, least(p_wanted, p_limit_second - n_second, p_limit_hour - n_hour, p_limit_day - n_day));
  n_second := n_second + granted;
  n_hour := n_hour + granted;
  n_day := n_day + granted;
  IF granted > 0 THEN
    INSERT INTO rate_counter VALUES (p_api_key_id, p_bucket, take_tokens.second, take_tokens.n_second,
                                     take_tokens.n_hour, take_tokens.n_day)
    ON CONFLICT ON CONSTRAINT rate_counter_pkey
    DO UPDATE SET n_second = excluded.n_second, n_hour = excluded.n_hour, n_day = excluded.n_day;
  END IF;
END $$;

-- Appends a batch of submissions, one per element of each array, in order of arrival. Claims idempotency keys without
-- waiting, reads back existing rows, takes rate tokens, then locks the log and appends after its highest index. Indexes
-- therefore have no gaps, and readers always see a prefix.
--
-- Locks: idempotency keys (never waits), rate counters in the order of API key ids, the log; so calls cannot deadlock.
-- A row whose idempotency key another call holds is `busy`; other rows are unaffected.
--
-- `p_again`: an earlier call with the same ids may have committed; its rows are read back.
-- outcome: 0 stored (or already stored), 1 replayed, 2 key reused, 3 busy, 4 over the limit.
-- Raises ATFRZ if the log is frozen.
CREATE FUNCTION accept_submissions(
  p_log_id integer, p_again boolean, p_retention_ms bigint,
  p_id text[], p_project_id text[], p_api_key_id text[], p_submitted_ms bigint[], p_artifact_sha256 bytea[],
  p_schema text[], p_metadata text[], p_metadata_state smallint[], p_metadata_errors text[],
  p_salt bytea[], p_commitment bytea[], p_dsse_key_id integer[], p_signature bytea[], p_leaf_hash bytea[],
  p_idempotency_key text[], p_request_hash bytea[],
  p_limit_second bigint[], p_limit_hour bigint[], p_limit_day bigint[]
) RETURNS TABLE (
  outcome smallint, resource_id text, log_index bigint,
  second bigint, n_second bigint, n_hour bigint, n_day bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_rows CONSTANT integer := cardinality(p_id);
  v_outcome smallint[] := array_fill(0::smallint, ARRAY[v_rows]);
  v_resource text[] := p_id;
  v_index bigint[] := array_fill(NULL::bigint, ARRAY[v_rows]);
  v_new boolean[] := array_fill(true, ARRAY[v_rows]);
  v_taken record;
  v_second bigint[] := array_fill(NULL::bigint, ARRAY[v_rows]);
  v_n_second bigint[] := array_fill(NULL::bigint, ARRAY[v_rows]);
  v_n_hour bigint[] := array_fill(NULL::bigint, ARRAY[v_rows]);
  v_n_day bigint[] := array_fill(NULL::bigint, ARRAY[v_rows]);
  v_next bigint;
  v_position integer;
  v_frozen timestamptz;
  r record;
BEGIN
  IF p_again THEN
    FOR r IN SELECT u.n, s.log_index FROM unnest(p_id) WITH ORDINALITY u(id, n) JOIN submission s ON s.id = u.id LOOP
      v_new[r.n] := false;
      v_index[r.n] := r.log_index;
    END LOOP;
  END IF;

  IF cardinality(array_remove(p_idempotency_key, NULL)) > 0 THEN
    FOR r IN
      SELECT u.n, hashtextextended(u.api_key_id || ' ' || u.key, 0) AS lock_key
      FROM unnest(p_api_key_id, p_idempotency_key) WITH ORDINALITY u(api_key_id, key, n)
      WHERE u.key IS NOT NULL ORDER BY lock_key
    LOOP
      IF v_new[r.n] AND NOT pg_try_advisory_xact_lock(r.lock_key) THEN
        v_new[r.n] := false;
        v_outcome[r.n] := 3;
      END IF;
    END LOOP;
    FOR r IN
      SELECT u.n, k.resource_id, k.request_hash = u.request_hash AS same
      FROM unnest(p_api_key_id, p_idempotency_key, p_request_hash) WITH ORDINALITY u(api_key_id, key, request_hash, n)
      JOIN idempotency_key k ON k.api_key_id = u.api_key_id AND k.key = u.key
      WHERE k.created_at > clock_timestamp() - p_retention_ms * interval '1 millisecond'
    LOOP
      IF v_new[r.n] THEN
        v_new[r.n] := false;
        v_outcome[r.n] := CASE WHEN r.same THEN 1 ELSE 2 END;
        v_resource[r.n] := CASE WHEN r.same THEN r.resource_id END;
      END IF;
    END LOOP;
  END IF;

  FOR r IN
    SELECT u.api_key_id, array_agg(u.n ORDER BY u.n) AS places,
           min(u.limit_second) AS limit_second, min(u.limit_hour) AS limit_hour, min(u.limit_day) AS limit_day
    FROM unnest(p_api_key_id, p_limit_second, p_limit_hour, p_limit_day, v_new)
      WITH ORDINALITY u(api_key_id, limit_second, limit_hour, limit_day, new, n)
    WHERE u.new GROUP BY u.api_key_id ORDER BY u.api_key_id
  LOOP
    SELECT * INTO v_taken FROM take_tokens(r.api_key_id, 2::smallint, cardinality(r.places)::bigint,
                                           r.limit_second, r.limit_hour, r.limit_day);
    FOR v_position IN 1..cardinality(r.places) LOOP
      IF v_position > v_taken.granted THEN
        v_new[r.places[v_position]] := false;
        v_outcome[r.places[v_position]] := 4;
      END IF;
      v_second[r.places[v_position]] := v_taken.second;
      v_n_second[r.places[v_position]] := v_taken.n_second;
      v_n_hour[r.places[v_position]] := v_taken.n_hour;
      v_n_day[r.places[v_position]] := v_taken.n_day;
    END LOOP;
  END LOOP;

  IF true = ANY (v_new) THEN
    PERFORM pg_advisory_xact_lock(1, p_log_id);
    SELECT l.frozen_at INTO STRICT v_frozen FROM log l WHERE l.id = p_log_id;
    IF v_frozen IS NOT NULL THEN
      RAISE EXCEPTION 'log % is frozen', p_log_id USING ERRCODE = 'ATFRZ';
    END IF;
    SELECT coalesce(max(s.log_index) + 1, 0) INTO v_next FROM submission s WHERE s.log_id = p_log_id;
    FOR v_position IN 1..v_rows LOOP
      IF v_new[v_position] THEN
        v_index[v_position] := v_next;
        v_next := v_next + 1;
      END IF;
    END LOOP;
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata,
                            metadata_state, metadata_errors, salt, commitment, dsse_key_id, signature, leaf_hash)
    SELECT p_log_id, u.log_index, u.id, u.project_id, to_timestamp(u.submitted_ms / 1000.0), u.artifact_sha256,
           u.schema, u.metadata, u.metadata_state, u.metadata_errors, u.salt, u.commitment, u.dsse_key_id,
           u.signature, u.leaf_hash
    FROM unnest(v_new, v_index, p_id, p_project_id, p_submitted_ms, p_artifact_sha256, p_schema, p_metadata,
                p_metadata_state, p_metadata_errors, p_salt, p_commitment, p_dsse_key_id, p_signature, p_leaf_hash)
      AS u(new, log_index, id, project_id, submitted_ms, artifact_sha256, schema, metadata, metadata_state,
           metadata_errors, salt, commitment, dsse_key_id, signature, leaf_hash)
    WHERE u.new;
    INSERT INTO idempotency_key (api_key_id, key, request_hash, resource_id, created_at)
    SELECT u.api_key_id, u.key, u.request_hash, u.id, clock_timestamp()
    FROM unnest(v_new, p_api_key_id, p_idempotency_key, p_request_hash, p_id)
      AS u(new, api_key_id, key, request_hash, id)
    WHERE u.new AND u.key IS NOT NULL
    ON CONFLICT ON CONSTRAINT idempotency_key_pkey DO UPDATE
    SET request_hash = excluded.request_hash, resource_id = excluded.resource_id, created_at = excluded.created_at;
  END IF;

  RETURN QUERY SELECT * FROM unnest(v_outcome, v_resource, v_index, v_second, v_n_second, v_n_hour, v_n_day);
END $$;

-- Names of the witnesses that a policy requires, except the log itself (kind 1), whose signature is always present.
CREATE FUNCTION required_witness(p policy) RETURNS SETOF text LANGUAGE sql IMMUTABLE AS $$
  SELECT w ->> 'name' FROM jsonb_array_elements(p.witnesses) w
  WHERE (w ->> 'required')::boolean AND (w ->> 'kind')::int <> 1
$$;

-- Whether there is evidence of a witness for a checkpoint of at least this size.
CREATE FUNCTION covered(p_log_id integer, p_witness text, p_tree_size bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT FROM evidence e
                 WHERE e.log_id = p_log_id AND e.witness = p_witness AND e.tree_size >= p_tree_size)
$$;
