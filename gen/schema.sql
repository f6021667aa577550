-- The schema of an empty database after all migrations, read from its catalogs. Written by `npm run generate` for
-- reviewers of migrations; nothing runs it.

CREATE TYPE submission_outcome AS ENUM ('stored', 'replayed', 'key_reused', 'busy', 'limited');

CREATE TYPE window_use AS (second bigint, n_second bigint, n_hour bigint, n_day bigint);

CREATE TABLE api_key (
  id text COLLATE "C" NOT NULL,
  project_id text COLLATE "C" NOT NULL,
  environment smallint NOT NULL,
  name text NOT NULL,
  prefix text NOT NULL,
  last4 text NOT NULL,
  hmac bytea NOT NULL,
  scopes text[] NOT NULL,
  submissions_per_second bigint NOT NULL DEFAULT 60,
  submissions_per_hour bigint NOT NULL DEFAULT 10000,
  submissions_per_day bigint NOT NULL DEFAULT 100000,
  reads_per_second bigint NOT NULL DEFAULT 600,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  last_used_at timestamp with time zone,
  successor_id text COLLATE "C",
  created_by text COLLATE "C",
  CONSTRAINT api_key_pkey PRIMARY KEY (id),
  CONSTRAINT api_key_created_by_fkey FOREIGN KEY (created_by) REFERENCES person(id),
  CONSTRAINT api_key_hmac_key UNIQUE (hmac),
  CONSTRAINT api_key_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id)
);
CREATE INDEX api_key_by_creator ON api_key USING btree (created_by) WHERE (created_by IS NOT NULL);
CREATE INDEX api_key_by_project ON api_key USING btree (project_id, id);

CREATE TABLE archived_object (
  log_id integer NOT NULL,
  tree_size bigint NOT NULL,
  first_id text COLLATE "C" NOT NULL,
  last_id text COLLATE "C" NOT NULL,
  place text NOT NULL,
  sha256 bytea NOT NULL,
  owners bytea NOT NULL,
  CONSTRAINT archived_object_pkey PRIMARY KEY (log_id, tree_size),
  CONSTRAINT archived_object_log_id_fkey FOREIGN KEY (log_id) REFERENCES log(id)
);
CREATE INDEX archived_object_by_id ON archived_object USING btree (log_id, first_id);

CREATE TABLE artifact_chunk (
  run_id bigint NOT NULL,
  first_entry bytea NOT NULL,
  entries bytea STORAGE PLAIN NOT NULL,
  CONSTRAINT artifact_chunk_pkey PRIMARY KEY (run_id, first_entry),
  CONSTRAINT artifact_chunk_run_id_fkey FOREIGN KEY (run_id) REFERENCES artifact_run(id)
);

CREATE TABLE artifact_run (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  log_id integer NOT NULL,
  level smallint NOT NULL,
  first_index bigint NOT NULL,
  end_index bigint NOT NULL,
  is_current boolean NOT NULL,
  merged_through bytea NOT NULL DEFAULT '\x'::bytea,
  CONSTRAINT artifact_run_pkey PRIMARY KEY (id),
  CONSTRAINT artifact_run_check CHECK ((end_index > first_index)),
  CONSTRAINT artifact_run_log_id_fkey FOREIGN KEY (log_id) REFERENCES log(id)
);
CREATE UNIQUE INDEX artifact_run_current ON artifact_run USING btree (log_id, end_index) WHERE is_current;
CREATE UNIQUE INDEX artifact_run_merging ON artifact_run USING btree (log_id) WHERE (NOT is_current);

CREATE TABLE audit_entry (
  id text COLLATE "C" NOT NULL,
  project_id text COLLATE "C",
  at timestamp(3) with time zone NOT NULL DEFAULT clock_timestamp(),
  actor_kind smallint NOT NULL,
  actor_id text COLLATE "C" NOT NULL,
  action smallint NOT NULL,
  resource_id text COLLATE "C" NOT NULL,
  request_id text COLLATE "C",
  detail jsonb NOT NULL DEFAULT '{}'::jsonb,
  actor_identity jsonb,
  actor_person jsonb,
  CONSTRAINT audit_entry_pkey PRIMARY KEY (id)
) PARTITION BY RANGE (id);
CREATE INDEX audit_entry_by_project ON ONLY audit_entry USING btree (project_id, id);
CREATE INDEX audit_entry_by_resource ON ONLY audit_entry USING btree (resource_id, id);
CREATE TRIGGER audit_entry_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit_entry FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE audit_entry_default (
  id text COLLATE "C" NOT NULL,
  project_id text COLLATE "C",
  at timestamp(3) with time zone NOT NULL DEFAULT clock_timestamp(),
  actor_kind smallint NOT NULL,
  actor_id text COLLATE "C" NOT NULL,
  action smallint NOT NULL,
  resource_id text COLLATE "C" NOT NULL,
  request_id text COLLATE "C",
  detail jsonb NOT NULL DEFAULT '{}'::jsonb,
  actor_identity jsonb,
  actor_person jsonb,
  CONSTRAINT audit_entry_default_pkey PRIMARY KEY (id)
);
ALTER TABLE audit_entry ATTACH PARTITION audit_entry_default DEFAULT;
CREATE INDEX audit_entry_default_project_id_id_idx ON audit_entry_default USING btree (project_id, id);
CREATE INDEX audit_entry_default_resource_id_id_idx ON audit_entry_default USING btree (resource_id, id);
CREATE TRIGGER audit_entry_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit_entry_default FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE batch (
  log_id integer NOT NULL,
  tree_size bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  first_index bigint NOT NULL,
  root_hash bytea NOT NULL,
  note text NOT NULL,
  policy_version integer NOT NULL,
  sealed_at timestamp with time zone NOT NULL,
  deadline_at timestamp with time zone NOT NULL,
  registered_at timestamp with time zone,
  status smallint NOT NULL DEFAULT 1,
  witnessed_at timestamp with time zone,
  CONSTRAINT batch_pkey PRIMARY KEY (log_id, tree_size),
  CONSTRAINT batch_check CHECK ((tree_size > first_index)),
  CONSTRAINT batch_id_key UNIQUE (id),
  CONSTRAINT batch_log_id_first_index_key UNIQUE (log_id, first_index),
  CONSTRAINT batch_log_id_fkey FOREIGN KEY (log_id) REFERENCES log(id)
);
CREATE INDEX batch_by_status ON batch USING btree (status, log_id, tree_size);
CREATE INDEX batch_unregistered ON batch USING btree (log_id, tree_size) WHERE (registered_at IS NULL);
CREATE INDEX batch_unsettled ON batch USING btree (log_id, tree_size) WHERE (status <> 2);
CREATE TRIGGER batch_times AFTER INSERT ON batch FOR EACH ROW EXECUTE FUNCTION add_log_times();

CREATE TABLE batch_content (
  log_id integer NOT NULL,
  tree_size bigint NOT NULL,
  project_id text COLLATE "C" NOT NULL,
  schema text NOT NULL,
  submissions integer NOT NULL,
  first_index bigint NOT NULL,
  last_index bigint NOT NULL,
  CONSTRAINT batch_content_pkey PRIMARY KEY (project_id, log_id, tree_size, schema)
);

CREATE TABLE batch_transition (
  log_id integer NOT NULL,
  tree_size bigint NOT NULL,
  status smallint NOT NULL,
  at timestamp with time zone NOT NULL DEFAULT now(),
  notified boolean NOT NULL DEFAULT false,
  landed text[],
  missing text[],
  CONSTRAINT batch_transition_pkey PRIMARY KEY (log_id, tree_size, status),
  CONSTRAINT batch_transition_log_id_tree_size_fkey FOREIGN KEY (log_id, tree_size) REFERENCES batch(log_id, tree_size)
);
CREATE INDEX batch_transition_not_notified ON batch_transition USING btree (log_id, tree_size) WHERE (NOT notified);

CREATE TABLE dsse_key (
  id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  environment smallint NOT NULL,
  spki bytea NOT NULL,
  valid_from timestamp with time zone NOT NULL DEFAULT now(),
  valid_to timestamp with time zone,
  active_from timestamp with time zone DEFAULT clock_timestamp(),
  CONSTRAINT dsse_key_pkey PRIMARY KEY (id),
  CONSTRAINT dsse_key_spki_key UNIQUE (spki)
);

CREATE TABLE evidence (
  log_id integer NOT NULL,
  witness text COLLATE "C" NOT NULL,
  tree_size bigint NOT NULL,
  kind smallint NOT NULL,
  evidence bytea NOT NULL,
  detail jsonb NOT NULL,
  landed_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT evidence_pkey PRIMARY KEY (log_id, witness, tree_size),
  CONSTRAINT evidence_log_id_fkey FOREIGN KEY (log_id) REFERENCES log(id)
);
CREATE TRIGGER evidence_export AFTER INSERT ON evidence FOR EACH ROW EXECUTE FUNCTION note_evidence();

CREATE TABLE exchanged_key (
  id text COLLATE "C" NOT NULL,
  trust_rule_id text COLLATE "C" NOT NULL,
  prefix text NOT NULL,
  last4 text NOT NULL,
  hmac bytea NOT NULL,
  identity jsonb NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT exchanged_key_pkey PRIMARY KEY (id),
  CONSTRAINT exchanged_key_hmac_key UNIQUE (hmac),
  CONSTRAINT exchanged_key_trust_rule_id_fkey FOREIGN KEY (trust_rule_id) REFERENCES trust_rule(id)
);
CREATE INDEX exchanged_key_by_expiry ON exchanged_key USING btree (expires_at);

CREATE TABLE exchanged_token (
  hash bytea NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  exchanged_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT exchanged_token_pkey PRIMARY KEY (hash)
);
CREATE INDEX exchanged_token_by_expiry ON exchanged_token USING btree (expires_at);

CREATE TABLE export (
  id text COLLATE "C" NOT NULL,
  number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  project_id text COLLATE "C" NOT NULL,
  environment smallint NOT NULL,
  destination jsonb NOT NULL,
  secrets bytea NOT NULL,
  schema text,
  compression smallint NOT NULL,
  start smallint NOT NULL,
  status smallint NOT NULL DEFAULT 1,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  stopped_at timestamp with time zone,
  failures integer NOT NULL DEFAULT 0,
  failing_since timestamp with time zone,
  last_error text,
  due_at timestamp with time zone,
  lease bigint NOT NULL DEFAULT 0,
  leased_until timestamp with time zone,
  stamp_at timestamp with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone,
  CONSTRAINT export_pkey PRIMARY KEY (id),
  CONSTRAINT export_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id)
) WITH (fillfactor=70);
CREATE INDEX export_by_project ON export USING btree (project_id, environment, number);
CREATE INDEX export_due ON export USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE TABLE export_change (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  log_id integer NOT NULL,
  first_index bigint NOT NULL,
  end_index bigint NOT NULL,
  project_id text COLLATE "C",
  CONSTRAINT export_change_pkey PRIMARY KEY (id)
);

CREATE TABLE export_cursor (
  export_id text COLLATE "C" NOT NULL,
  log_id integer NOT NULL,
  start_size bigint NOT NULL,
  through_size bigint NOT NULL,
  backfill_size bigint NOT NULL,
  CONSTRAINT export_cursor_pkey PRIMARY KEY (export_id, log_id),
  CONSTRAINT export_cursor_export_id_fkey FOREIGN KEY (export_id) REFERENCES export(id),
  CONSTRAINT export_cursor_log_id_fkey FOREIGN KEY (log_id) REFERENCES log(id)
);

CREATE TABLE export_manifest (
  export_id text COLLATE "C" NOT NULL,
  day date NOT NULL,
  wanted_revision bigint NOT NULL DEFAULT 1,
  shipped_revision bigint NOT NULL DEFAULT 0,
  is_complete boolean NOT NULL DEFAULT false,
  due_at timestamp with time zone NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  bytes bigint NOT NULL DEFAULT 0,
  submissions integer NOT NULL DEFAULT 0,
  error text,
  CONSTRAINT export_manifest_pkey PRIMARY KEY (export_id, day),
  CONSTRAINT export_manifest_export_id_fkey FOREIGN KEY (export_id) REFERENCES export(id)
);
CREATE INDEX export_manifest_pending ON export_manifest USING btree (export_id, due_at) WHERE (wanted_revision > shipped_revision);

CREATE TABLE export_shipment (
  export_id text COLLATE "C" NOT NULL,
  log_id integer NOT NULL,
  tree_size bigint NOT NULL,
  batch_id text COLLATE "C" NOT NULL,
  day date NOT NULL,
  wanted_revision bigint NOT NULL DEFAULT 1,
  shipped_revision bigint NOT NULL DEFAULT 0,
  priority smallint NOT NULL DEFAULT 2,
  attempts integer NOT NULL DEFAULT 0,
  at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  bytes bigint NOT NULL DEFAULT 0,
  submissions integer NOT NULL DEFAULT 0,
  sha256 bytea,
  error text,
  unstamped_from bigint,
  CONSTRAINT export_shipment_pkey PRIMARY KEY (export_id, log_id, tree_size),
  CONSTRAINT export_shipment_export_id_fkey FOREIGN KEY (export_id) REFERENCES export(id),
  CONSTRAINT export_shipment_log_id_tree_size_fkey FOREIGN KEY (log_id, tree_size) REFERENCES batch(log_id, tree_size)
) WITH (fillfactor=80);
CREATE INDEX export_shipment_by_batch ON export_shipment USING btree (log_id, tree_size);
CREATE INDEX export_shipment_by_day ON export_shipment USING btree (export_id, day, log_id, tree_size);
CREATE INDEX export_shipment_by_time ON export_shipment USING btree (export_id, at);
CREATE INDEX export_shipment_pending ON export_shipment USING btree (export_id, priority, log_id, tree_size) WHERE (wanted_revision > shipped_revision);
CREATE INDEX export_shipment_unstamped ON export_shipment USING btree (export_id, log_id, tree_size) WHERE (unstamped_from IS NOT NULL);

CREATE TABLE idempotency_key (
  api_key_id text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  request_hash bytea NOT NULL,
  resource_id text COLLATE "C" NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT idempotency_key_pkey PRIMARY KEY (api_key_id, key)
);
CREATE INDEX idempotency_key_by_age ON idempotency_key USING btree (created_at);

CREATE TABLE idempotency_lease (
  api_key_id text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  leased_until timestamp with time zone NOT NULL,
  CONSTRAINT idempotency_lease_pkey PRIMARY KEY (api_key_id, key)
);

CREATE TABLE invitation (
  id text COLLATE "C" NOT NULL,
  hash bytea NOT NULL,
  project_id text COLLATE "C",
  role smallint NOT NULL,
  email text,
  created_by text COLLATE "C",
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT invitation_pkey PRIMARY KEY (id),
  CONSTRAINT invitation_created_by_fkey FOREIGN KEY (created_by) REFERENCES person(id),
  CONSTRAINT invitation_hash_key UNIQUE (hash),
  CONSTRAINT invitation_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id)
);
CREATE INDEX invitation_by_project ON invitation USING btree (project_id, id);

CREATE TABLE log (
  id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  environment smallint NOT NULL,
  epoch integer NOT NULL,
  origin text NOT NULL,
  public_key bytea NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  frozen_at timestamp with time zone,
  frozen_reason text,
  ml_dsa_public_key bytea,
  ended_at timestamp with time zone,
  receipt_spki bytea,
  lane smallint NOT NULL DEFAULT 1,
  archived_size bigint NOT NULL DEFAULT 0,
  CONSTRAINT log_pkey PRIMARY KEY (id),
  CONSTRAINT log_archived_size_check CHECK ((archived_size >= 0)),
  CONSTRAINT log_environment_lane_epoch_key UNIQUE (environment, lane, epoch),
  CONSTRAINT log_lane_check CHECK ((lane > 0)),
  CONSTRAINT log_origin_key UNIQUE (origin)
);
CREATE TRIGGER log_partition AFTER INSERT ON log FOR EACH ROW EXECUTE FUNCTION add_first_partition();

CREATE TABLE log_time (
  log_id integer NOT NULL,
  end_index bigint NOT NULL,
  first_index bigint NOT NULL,
  tree_size bigint NOT NULL,
  earliest timestamp with time zone NOT NULL,
  latest timestamp with time zone NOT NULL,
  CONSTRAINT log_time_pkey PRIMARY KEY (log_id, end_index),
  CONSTRAINT log_time_log_id_tree_size_fkey FOREIGN KEY (log_id, tree_size) REFERENCES batch(log_id, tree_size) ON DELETE CASCADE
);
CREATE INDEX log_time_by_earliest ON log_time USING btree (log_id, earliest, end_index);
CREATE INDEX log_time_by_latest ON log_time USING btree (log_id, latest, end_index);

CREATE TABLE logout_token (
  hash bytea NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT logout_token_pkey PRIMARY KEY (hash)
);

CREATE TABLE membership (
  person_id text COLLATE "C" NOT NULL,
  project_id text COLLATE "C",
  rule_id text COLLATE "C",
  role smallint NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT membership_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id),
  CONSTRAINT membership_person_id_project_id_rule_id_key UNIQUE NULLS NOT DISTINCT (person_id, project_id, rule_id),
  CONSTRAINT membership_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id),
  CONSTRAINT membership_rule_id_fkey FOREIGN KEY (rule_id) REFERENCES role_rule(id) ON DELETE CASCADE
);
CREATE INDEX membership_by_project ON membership USING btree (project_id, person_id);
CREATE INDEX membership_by_rule ON membership USING btree (rule_id);

CREATE TABLE metadata_change (
  project_id text COLLATE "C" NOT NULL,
  changes bigint NOT NULL,
  CONSTRAINT metadata_change_pkey PRIMARY KEY (project_id),
  CONSTRAINT metadata_change_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id)
);

CREATE TABLE migration (
  name text NOT NULL,
  ran_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT migration_pkey PRIMARY KEY (name)
);

CREATE TABLE person (
  id text COLLATE "C" NOT NULL,
  issuer text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  name text NOT NULL,
  email text NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  signed_in_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT person_pkey PRIMARY KEY (id),
  CONSTRAINT person_issuer_subject_key UNIQUE (issuer, subject)
);

CREATE TABLE policy (
  environment smallint NOT NULL,
  version integer NOT NULL,
  witnesses jsonb NOT NULL,
  deadline_ms bigint NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  quorums jsonb NOT NULL DEFAULT '[]'::jsonb,
  CONSTRAINT policy_pkey PRIMARY KEY (environment, version)
);

CREATE TABLE project (
  id text COLLATE "C" NOT NULL,
  name text NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  webhook_deliveries_per_second bigint NOT NULL DEFAULT 100,
  webhook_deliveries_burst bigint NOT NULL DEFAULT 1000,
  public_lookup boolean,
  submissions_per_second bigint,
  submissions_per_hour bigint,
  submissions_per_day bigint,
  reads_per_second bigint,
  CONSTRAINT project_pkey PRIMARY KEY (id),
  CONSTRAINT project_reads_per_second_check CHECK ((reads_per_second >= 0)),
  CONSTRAINT project_submissions_per_day_check CHECK ((submissions_per_day >= 0)),
  CONSTRAINT project_submissions_per_hour_check CHECK ((submissions_per_hour >= 0)),
  CONSTRAINT project_submissions_per_second_check CHECK ((submissions_per_second >= 0))
);
CREATE INDEX project_by_entry ON project USING btree (substr(sha256((id)::bytea), 1, 4));

CREATE TABLE project_lane (
  project_id text COLLATE "C" NOT NULL,
  environment smallint NOT NULL,
  lane smallint NOT NULL,
  CONSTRAINT project_lane_pkey PRIMARY KEY (project_id, environment),
  CONSTRAINT project_lane_lane_check CHECK ((lane > 0)),
  CONSTRAINT project_lane_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id)
);
CREATE INDEX project_lane_by_lane ON project_lane USING btree (environment, lane);

CREATE TABLE rate_counter (
  api_key_id text COLLATE "C" NOT NULL,
  bucket smallint NOT NULL,
  second bigint NOT NULL,
  n_second bigint NOT NULL,
  n_hour bigint NOT NULL,
  n_day bigint NOT NULL,
  CONSTRAINT rate_counter_pkey PRIMARY KEY (api_key_id, bucket, second)
) WITH (fillfactor=70);

CREATE TABLE role_rule (
  id text COLLATE "C" NOT NULL,
  project_id text COLLATE "C",
  role smallint NOT NULL,
  conditions jsonb NOT NULL,
  created_by text COLLATE "C",
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT role_rule_pkey PRIMARY KEY (id),
  CONSTRAINT role_rule_created_by_fkey FOREIGN KEY (created_by) REFERENCES person(id),
  CONSTRAINT role_rule_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id)
);
CREATE INDEX role_rule_by_project ON role_rule USING btree (project_id, id);

CREATE TABLE secret_key (
  id text NOT NULL,
  fingerprint bytea NOT NULL,
  first_used_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT secret_key_pkey PRIMARY KEY (id)
);

CREATE TABLE session (
  id text COLLATE "C" NOT NULL,
  hash bytea NOT NULL,
  project_id text COLLATE "C",
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  last_used_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamp with time zone NOT NULL,
  link_id text COLLATE "C",
  person_id text COLLATE "C",
  provider_session text,
  operator_rule text,
  CONSTRAINT session_pkey PRIMARY KEY (id),
  CONSTRAINT session_hash_key UNIQUE (hash),
  CONSTRAINT session_person_id_fkey FOREIGN KEY (person_id) REFERENCES person(id),
  CONSTRAINT session_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id)
);
CREATE INDEX session_by_person ON session USING btree (person_id);
CREATE INDEX session_by_project ON session USING btree (project_id);

CREATE TABLE sign_in_attempt (
  peer text COLLATE "C" NOT NULL,
  count integer NOT NULL,
  until timestamp with time zone NOT NULL,
  CONSTRAINT sign_in_attempt_pkey PRIMARY KEY (peer)
);

CREATE TABLE sign_in_link (
  id text COLLATE "C" NOT NULL,
  hash bytea NOT NULL,
  project_id text COLLATE "C" NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT sign_in_link_pkey PRIMARY KEY (id),
  CONSTRAINT sign_in_link_hash_key UNIQUE (hash),
  CONSTRAINT sign_in_link_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id)
);
CREATE INDEX sign_in_link_by_project ON sign_in_link USING btree (project_id);

CREATE TABLE signature_stamp (
  log_id integer NOT NULL,
  log_index bigint NOT NULL,
  witness text COLLATE "C" NOT NULL,
  response bytea NOT NULL,
  CONSTRAINT signature_stamp_pkey PRIMARY KEY (log_id, log_index, witness)
);

CREATE TABLE submission (
  log_id integer NOT NULL,
  log_index bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  project_id text COLLATE "C",
  submitted_at timestamp with time zone NOT NULL,
  artifact_sha256 bytea NOT NULL,
  schema text,
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
  redacted_at timestamp with time zone,
  build text COLLATE "C",
  project_number integer,
  schema_number integer,
  CONSTRAINT submission_pkey PRIMARY KEY (log_id, log_index),
  CONSTRAINT submission_named CHECK ((((project_id IS NULL) = (schema IS NULL)) AND ((project_id IS NULL) = (project_number IS NOT NULL)) AND ((schema IS NULL) = (schema_number IS NOT NULL))))
) PARTITION BY RANGE (log_id, log_index);
CREATE INDEX submission_build_leaves ON ONLY submission USING btree (hashtextextended(build, (COALESCE(project_number, hashtext(project_id)))::bigint), log_id, ((log_index >> 4))) WHERE (build IS NOT NULL);
CREATE INDEX submission_build_schema_leaves ON ONLY submission USING btree (hashtextextended(build, (COALESCE(schema_number, hashtext(((project_id || '
'::text) || schema))))::bigint), log_id, ((log_index >> 4))) WHERE (build IS NOT NULL);
CREATE INDEX submission_of_id ON ONLY submission USING btree (substr(id, 5, 15));
CREATE INDEX submission_project_leaves ON ONLY submission USING btree (COALESCE(project_number, hashtext(project_id)), log_id, ((log_index >> 4)));
CREATE INDEX submission_schema_leaves ON ONLY submission USING btree (COALESCE(schema_number, hashtext(((project_id || '
'::text) || schema))), log_id, ((log_index >> 4)));
CREATE TRIGGER submission_change AFTER UPDATE ON submission REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_metadata_changes();
CREATE TRIGGER submission_export AFTER UPDATE ON submission REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_metadata_changes();

CREATE TABLE submission_name (
  number integer NOT NULL,
  project_id text COLLATE "C" NOT NULL,
  schema text NOT NULL,
  CONSTRAINT submission_name_pkey PRIMARY KEY (number)
);

CREATE TABLE submission_numbering (
  since timestamp with time zone NOT NULL
);

CREATE TABLE submission_statement (
  log_id integer NOT NULL,
  log_index bigint NOT NULL,
  digest bytea NOT NULL,
  text text,
  shown text,
  subjects bytea[] STORAGE EXTERNAL,
  erased_at timestamp with time zone,
  CONSTRAINT submission_statement_pkey PRIMARY KEY (log_id, log_index)
);

CREATE TABLE tail_time (
  log_id integer NOT NULL,
  end_index bigint NOT NULL,
  first_index bigint NOT NULL,
  earliest timestamp with time zone NOT NULL,
  latest timestamp with time zone NOT NULL,
  CONSTRAINT tail_time_pkey PRIMARY KEY (log_id, end_index)
);

CREATE TABLE tile (
  log_id integer NOT NULL,
  level smallint NOT NULL,
  tile_index bigint NOT NULL,
  hashes bytea STORAGE EXTERNAL NOT NULL,
  nodes bytea STORAGE EXTERNAL,
  CONSTRAINT tile_pkey PRIMARY KEY (log_id, level, tile_index)
);
CREATE INDEX tile_without_nodes ON tile USING btree (log_id, level, tile_index) WHERE ((octet_length(hashes) = 8192) AND ((nodes IS NULL) OR (octet_length(nodes) < 512)));

CREATE TABLE timestamp_authority (
  id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  name text NOT NULL,
  url text NOT NULL,
  operator text NOT NULL,
  cert_chain_pem text[] NOT NULL,
  valid_from timestamp with time zone NOT NULL DEFAULT now(),
  valid_to timestamp with time zone,
  CONSTRAINT timestamp_authority_pkey PRIMARY KEY (id)
);
CREATE INDEX timestamp_authority_active ON timestamp_authority USING btree (name) WHERE (valid_to IS NULL);

CREATE TABLE trust_rule (
  id text COLLATE "C" NOT NULL,
  project_id text COLLATE "C" NOT NULL,
  environment smallint NOT NULL,
  issuer text COLLATE "C" NOT NULL,
  audience text NOT NULL,
  conditions jsonb NOT NULL,
  scopes text[] NOT NULL,
  submissions_per_second bigint NOT NULL,
  submissions_per_hour bigint NOT NULL,
  submissions_per_day bigint NOT NULL,
  reads_per_second bigint NOT NULL,
  recorded_claims text[] NOT NULL,
  reusable_tokens boolean NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  removed_at timestamp with time zone,
  created_by text COLLATE "C",
  CONSTRAINT trust_rule_pkey PRIMARY KEY (id),
  CONSTRAINT trust_rule_created_by_fkey FOREIGN KEY (created_by) REFERENCES person(id),
  CONSTRAINT trust_rule_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id)
);
CREATE INDEX trust_rule_by_creator ON trust_rule USING btree (created_by) WHERE (created_by IS NOT NULL);
CREATE INDEX trust_rule_by_issuer ON trust_rule USING btree (issuer, id) WHERE (removed_at IS NULL);
CREATE INDEX trust_rule_by_project ON trust_rule USING btree (project_id, id);

CREATE TABLE trusted_witness (
  id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  name text COLLATE "C" NOT NULL,
  identity jsonb NOT NULL,
  valid_from timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  valid_to timestamp with time zone,
  CONSTRAINT trusted_witness_pkey PRIMARY KEY (id)
);

CREATE TABLE tuf_file (
  name text COLLATE "C" NOT NULL,
  role text COLLATE "C",
  version bigint,
  content bytea NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT tuf_file_pkey PRIMARY KEY (name),
  CONSTRAINT tuf_file_check CHECK (((role IS NULL) = (version IS NULL))),
  CONSTRAINT tuf_file_content_check CHECK ((length(content) <= 500000)),
  CONSTRAINT tuf_file_role_check CHECK ((role = ANY (ARRAY['root'::text, 'targets'::text, 'snapshot'::text, 'timestamp'::text]))),
  CONSTRAINT tuf_file_role_version_key UNIQUE (role, version),
  CONSTRAINT tuf_file_version_check CHECK ((version > 0))
);

CREATE TABLE usage_counter (
  api_key_id text COLLATE "C" NOT NULL,
  window_seconds integer NOT NULL,
  started bigint NOT NULL,
  bucket smallint NOT NULL,
  n bigint NOT NULL,
  CONSTRAINT usage_counter_pkey PRIMARY KEY (api_key_id, window_seconds, started, bucket)
);
CREATE INDEX usage_counter_by_age ON usage_counter USING btree (window_seconds, started);

CREATE TABLE webhook (
  id text COLLATE "C" NOT NULL,
  number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  project_id text COLLATE "C" NOT NULL,
  environment smallint NOT NULL,
  url text NOT NULL,
  events smallint[] NOT NULL,
  status smallint NOT NULL DEFAULT 1,
  disabled_reason text,
  secret bytea NOT NULL,
  previous_secret bytea,
  previous_secret_until timestamp with time zone,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  active_since timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  deleted_at timestamp with time zone,
  failing_since timestamp with time zone,
  redeliver_since timestamp with time zone,
  due_at timestamp with time zone,
  lease bigint NOT NULL DEFAULT 0,
  leased_until timestamp with time zone,
  older_secrets bytea[] NOT NULL DEFAULT '{}'::bytea[],
  older_secrets_until timestamp with time zone[] NOT NULL DEFAULT '{}'::timestamp with time zone[],
  CONSTRAINT webhook_pkey PRIMARY KEY (id),
  CONSTRAINT webhook_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id)
) WITH (fillfactor=70);
CREATE INDEX webhook_by_project ON webhook USING btree (project_id, environment, number) WHERE (status <> 3);
CREATE INDEX webhook_due ON webhook USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE TABLE webhook_attempt (
  delivery_id text COLLATE "C" NOT NULL,
  number integer NOT NULL,
  at timestamp with time zone NOT NULL,
  duration_ms integer NOT NULL,
  status_code smallint,
  error text,
  answer text,
  url text,
  CONSTRAINT webhook_attempt_pkey PRIMARY KEY (delivery_id, number)
);

CREATE TABLE webhook_delivery (
  webhook_id text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  submission_id text COLLATE "C",
  log_id integer,
  tree_size bigint,
  transition smallint,
  status smallint NOT NULL DEFAULT 1,
  attempt integer NOT NULL DEFAULT 0,
  step smallint NOT NULL DEFAULT 0,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  next_attempt_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  delivered_at timestamp with time zone,
  export_id text COLLATE "C",
  detail text,
  CONSTRAINT webhook_delivery_pkey PRIMARY KEY (webhook_id, id)
);
CREATE INDEX webhook_delivery_by_submission ON webhook_delivery USING btree (webhook_id, submission_id, id) WHERE (submission_id IS NOT NULL);
CREATE INDEX webhook_delivery_failed ON webhook_delivery USING btree (webhook_id, id) WHERE (status = 3);
CREATE INDEX webhook_delivery_pending ON webhook_delivery USING btree (webhook_id, next_attempt_at) WHERE (status = 1);

CREATE TABLE webhook_range (
  webhook_id text COLLATE "C" NOT NULL,
  log_id integer NOT NULL,
  tree_size bigint NOT NULL,
  transition smallint NOT NULL,
  next_index bigint NOT NULL,
  last_index bigint NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT webhook_range_pkey PRIMARY KEY (webhook_id, log_id, tree_size, transition)
);

CREATE TABLE webhook_tokens (
  project_id text COLLATE "C" NOT NULL,
  tokens double precision NOT NULL,
  at timestamp with time zone NOT NULL,
  CONSTRAINT webhook_tokens_pkey PRIMARY KEY (project_id)
) WITH (fillfactor=50);

CREATE TABLE witness_request (
  log_id integer NOT NULL,
  witness text COLLATE "C" NOT NULL,
  tree_size bigint NOT NULL,
  state bytea NOT NULL,
  detail jsonb NOT NULL,
  is_exclusive boolean NOT NULL,
  requested_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  attempt bigint NOT NULL DEFAULT 0,
  leased_until timestamp with time zone,
  next_poll_at timestamp with time zone NOT NULL,
  failures integer NOT NULL DEFAULT 0,
  last_error text,
  last_error_class text,
  CONSTRAINT witness_request_pkey PRIMARY KEY (log_id, witness, tree_size),
  CONSTRAINT witness_request_log_id_fkey FOREIGN KEY (log_id) REFERENCES log(id)
);
CREATE UNIQUE INDEX witness_request_exclusive ON witness_request USING btree (witness) WHERE is_exclusive;

CREATE TABLE witness_state (
  log_id integer NOT NULL,
  witness text COLLATE "C" NOT NULL,
  attempt bigint NOT NULL DEFAULT 0,
  leased_until timestamp with time zone,
  next_attempt_at timestamp with time zone NOT NULL DEFAULT now(),
  failures integer NOT NULL DEFAULT 0,
  last_failed_at timestamp with time zone,
  last_error text,
  covers_tree_size bigint NOT NULL DEFAULT 0,
  requested_tree_size bigint NOT NULL DEFAULT 0,
  last_error_class text,
  CONSTRAINT witness_state_pkey PRIMARY KEY (log_id, witness),
  CONSTRAINT witness_state_log_id_fkey FOREIGN KEY (log_id) REFERENCES log(id)
);

CREATE TABLE worker (
  id text COLLATE "C" NOT NULL,
  seen_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT worker_pkey PRIMARY KEY (id)
);

CREATE VIEW named_submission AS
 SELECT s.log_id,
    s.log_index,
    s.id,
    COALESCE(s.project_id, n.project_id) AS project_id,
    s.submitted_at,
    s.artifact_sha256,
    COALESCE(s.schema, n.schema) AS schema,
    s.metadata,
    s.metadata_state,
    s.metadata_errors,
    s.attested_schema,
    s.attested_metadata,
    s.salt,
    s.commitment,
    s.statement_version,
    s.dsse_key_id,
    s.signature,
    s.leaf_hash,
    s.redacted_at,
    s.build,
    s.project_number,
    s.schema_number,
    s.xmin::text AS version
   FROM submission s
     LEFT JOIN submission_name n ON n.number = s.schema_number;

CREATE VIEW submission_partition AS
 SELECT c.relname::text AS name,
    NULLIF(b.bound[1], 'MINVALUE'::text)::integer AS log_id,
    NULLIF(b.bound[2], 'MINVALUE'::text)::bigint AS first_index,
    b.bound[3]::integer AS end_log_id,
    NULLIF(b.bound[4], 'MINVALUE'::text)::bigint AS end_index
   FROM pg_inherits i
     JOIN pg_class c ON c.oid = i.inhrelid
     CROSS JOIN LATERAL ( SELECT regexp_match(replace(pg_get_expr(c.relpartbound, c.oid), ''''::text, ''::text), 'FROM \((\S+), (\S+)\) TO \((\S+), (\S+)\)'::text) AS bound) b
  WHERE i.inhparent = 'submission'::regclass::oid AND NOT i.inhdetachpending;

CREATE OR REPLACE FUNCTION add_audit_partition(p_name text, p_bounds text)
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
BEGIN
  EXECUTE format('CREATE TABLE %I PARTITION OF audit_entry %s', p_name, p_bounds);
  EXECUTE format('CREATE TRIGGER audit_entry_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %I
                  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', p_name);
END $function$;
COMMENT ON FUNCTION add_audit_partition(p_name text, p_bounds text) IS 'Adds an append-only partition to audit_entry. p_bounds is DEFAULT or FOR VALUES ….
Locks: audit_entry and its default partition, exclusively.';

CREATE OR REPLACE FUNCTION add_first_partition()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
BEGIN
  PERFORM add_submission_partition(NEW.id);
  RETURN NULL;
END $function$;
COMMENT ON FUNCTION add_first_partition() IS 'Trigger of log: a log has its first partition from the transaction on that creates it, also by a process of the version before.
Locks: those of add_submission_partition.';

CREATE OR REPLACE FUNCTION add_log_times()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
DECLARE
  v_latest timestamptz := coalesce((SELECT t.latest FROM log_time t WHERE t.log_id = NEW.log_id
                                    ORDER BY t.end_index DESC LIMIT 1), '-infinity');
  v_earliest timestamptz;
  v_end bigint := NEW.first_index;
BEGIN
  INSERT INTO log_time (log_id, end_index, first_index, tree_size, earliest, latest)
  SELECT NEW.log_id, max(log_index) + 1, min(log_index), NEW.tree_size,
         min(min(submitted_at)) OVER (ORDER BY min(log_index) DESC),
         greatest(v_latest, max(max(submitted_at)) OVER (ORDER BY min(log_index)))
  FROM submission
  WHERE log_id = NEW.log_id AND log_index >= NEW.first_index AND log_index < NEW.tree_size
  GROUP BY (log_index - NEW.first_index) / 256;
  SELECT t.earliest INTO v_earliest FROM log_time t
  WHERE t.log_id = NEW.log_id AND t.end_index > NEW.first_index ORDER BY t.end_index LIMIT 1;
  LOOP
    SELECT t.end_index INTO v_end FROM (
      SELECT l.end_index, l.earliest FROM log_time l WHERE l.log_id = NEW.log_id AND l.end_index <= v_end
      ORDER BY l.end_index DESC LIMIT 1) t
    WHERE t.earliest > v_earliest;
    EXIT WHEN NOT FOUND;
    UPDATE log_time SET earliest = v_earliest WHERE log_id = NEW.log_id AND end_index = v_end;
    v_end := v_end - 1;
  END LOOP;
  RETURN NULL;
END $function$;
COMMENT ON FUNCTION add_log_times() IS 'Trigger of batch: adds the time bounds of the new leaves to log_time, one row per 256 leaves. Then lowers earliest of the rows before where a new leaf is earlier; they are read from the newest on, and only the last ones can be later.
Locks: the rows of log_time that it changes.';

CREATE OR REPLACE FUNCTION add_submission_partition(p_log_id integer, p_leaves bigint DEFAULT 67108864)
 RETURNS text
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
DECLARE
  v_number integer;
  v_first bigint;
  v_name text;
  v_schema CONSTANT name := (SELECT c.relnamespace::regnamespace FROM pg_class c WHERE c.oid = 'submission'::regclass);
  v_statistics text;
BEGIN
  LOCK TABLE submission IN SHARE UPDATE EXCLUSIVE MODE;
  IF EXISTS (SELECT FROM submission_partition p WHERE p.log_id IS NULL AND p_log_id < p.end_log_id) THEN
    RETURN NULL;
  END IF;
  SELECT substring(p.name FROM '\d+$')::integer, p.end_index INTO v_number, v_first FROM submission_partition p
    WHERE p.log_id = p_log_id ORDER BY p.end_index DESC LIMIT 1;
  v_name := format('submission_%s_%s', p_log_id, coalesce(v_number + 1, 0));
  v_first := coalesce(v_first, 0);
  SELECT string_agg(format('ALTER COLUMN %I SET STATISTICS %s', a.attname, a.attstattarget), ', ') INTO v_statistics
    FROM pg_attribute a WHERE a.attrelid = 'submission'::regclass AND a.attstattarget >= 0 AND a.attnum > 0;
  EXECUTE format('CREATE TABLE %I.%I (LIKE submission INCLUDING ALL)', v_schema, v_name);
  EXECUTE format('ALTER TABLE %I %s', v_name, v_statistics);
  EXECUTE format('ALTER TABLE submission ATTACH PARTITION %I FOR VALUES FROM (%s, %s) TO (%s, %s)',
                 v_name, p_log_id, v_first, p_log_id, v_first + p_leaves);
  RETURN v_name;
END $function$;
COMMENT ON FUNCTION add_submission_partition(p_log_id integer, p_leaves bigint) IS 'Adds the partition of the next p_leaves leaves of a log behind its last one, submission_<log id>_<number>. Returns its name, or null if the log is in the partition of the logs from before, which has no end.
Locks: submission, SHARE UPDATE EXCLUSIVE until the transaction ends, with which rows are read and written.';

CREATE OR REPLACE FUNCTION allocate_log_indexes(p_log_id integer, p_outcome submission_outcome[], INOUT p_log_index bigint[])
 RETURNS bigint[]
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
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
END $function$;
COMMENT ON FUNCTION allocate_log_indexes(p_log_id integer, p_outcome submission_outcome[], INOUT p_log_index bigint[]) IS 'Fourth step of append_submissions: assigns the next indexes of the log to the rows without an outcome, in order. Raises ATFRZ if the log is frozen.
Locks: the advisory lock (1, p_log_id) until the transaction ends, so that indexes have no gaps and readers always see a prefix of the log.';

CREATE OR REPLACE FUNCTION append_submissions(p_log_id integer, p_is_retry boolean, p_retention_ms bigint, p_api_key_id text[], p_project_id text[], p_limit_second bigint[], p_limit_hour bigint[], p_limit_day bigint[], p_key integer[], p_id text[], p_submitted_ms bigint[], p_schema text[], p_dsse_key_id integer[], p_bytes bytea[], p_metadata text, p_metadata_errors text[], p_idempotency_key text[], p_request_hash bytea[], p_build text[] DEFAULT NULL::text[], p_statement_version smallint[] DEFAULT NULL::smallint[], p_statement text DEFAULT NULL::text, p_digest bytea[] DEFAULT NULL::bytea[], p_shown text[] DEFAULT NULL::text[], p_subjects text[] DEFAULT NULL::text[], p_knows_numbers boolean DEFAULT false, OUT first_index bigint, OUT use json, OUT outcome json, OUT resource_id json, OUT log_index json)
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
DECLARE
  v_outcome submission_outcome[] := array_fill(NULL::submission_outcome, ARRAY[cardinality(p_id)]);
  v_log_index bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_id)]);
  v_resource_id text[] := p_id;
  v_metadata CONSTANT text[] := string_to_array(p_metadata, E'\n');
  v_use window_use[];
  v_holder text[];
  v_first integer;
BEGIN
  IF cardinality(v_metadata) <> cardinality(p_id) THEN
    RAISE EXCEPTION '% texts of metadata for % submissions', cardinality(v_metadata), cardinality(p_id);
  END IF;
  IF p_is_retry THEN
    SELECT * INTO v_outcome, v_log_index FROM find_stored_submissions(p_id, v_outcome, v_log_index);
  END IF;
  IF p_idempotency_key IS NOT NULL THEN
    SELECT array_agg(p_api_key_id[u.key] ORDER BY u.n) INTO v_holder FROM unnest(p_key) WITH ORDINALITY u(key, n);
    SELECT * INTO v_outcome, v_resource_id FROM claim_idempotency_keys(
      v_holder, p_idempotency_key, p_request_hash, p_retention_ms, v_outcome, v_resource_id);
  END IF;
  IF v_outcome && ARRAY['stored', 'replayed']::submission_outcome[] THEN
    PERFORM confirm_durable();
  END IF;
  SELECT * INTO v_outcome, v_use
    FROM take_key_tokens(p_key, p_api_key_id, p_limit_second, p_limit_hour, p_limit_day, v_outcome);
  SELECT * INTO v_outcome, v_use FROM take_project_tokens(
    p_key, p_api_key_id, p_project_id, p_limit_second, p_limit_hour, p_limit_day, v_outcome, v_use);
  v_first := array_position(v_outcome, NULL);
  IF v_first IS NOT NULL THEN
    v_log_index := allocate_log_indexes(p_log_id, v_outcome, v_log_index);
    PERFORM assert_new_ids(p_log_id, v_log_index[v_first], p_id, v_outcome);
    PERFORM store_rows(p_log_id, p_knows_numbers, v_outcome, v_log_index, p_key, p_project_id, p_id, p_submitted_ms, p_schema, p_dsse_key_id,
                       p_bytes, v_metadata, p_metadata_errors, p_build, p_statement_version);
    PERFORM store_statements(p_log_id, v_outcome, v_log_index, p_statement_version, p_statement, p_digest, p_shown, p_subjects);
    IF p_idempotency_key IS NOT NULL THEN
      PERFORM record_idempotency_keys(v_holder, p_idempotency_key, p_request_hash, p_id, v_outcome);
    END IF;
    first_index := v_log_index[v_first];
  END IF;
  use := to_json(v_use);
  IF cardinality(array_remove(v_outcome, NULL)) > 0 THEN
    SELECT to_json(v_outcome), to_json(v_resource_id), to_json(v_log_index) INTO outcome, resource_id, log_index;
  END IF;
END $function$;
COMMENT ON FUNCTION append_submissions(p_log_id integer, p_is_retry boolean, p_retention_ms bigint, p_api_key_id text[], p_project_id text[], p_limit_second bigint[], p_limit_hour bigint[], p_limit_day bigint[], p_key integer[], p_id text[], p_submitted_ms bigint[], p_schema text[], p_dsse_key_id integer[], p_bytes bytea[], p_metadata text, p_metadata_errors text[], p_idempotency_key text[], p_request_hash bytea[], p_build text[], p_statement_version smallint[], p_statement text, p_digest bytea[], p_shown text[], p_subjects text[], p_knows_numbers boolean, OUT first_index bigint, OUT use json, OUT outcome json, OUT resource_id json, OUT log_index json) IS 'Appends submissions to a log. p_api_key_id, p_project_id and p_limit_* have an element per API key, the other arrays one per submission; p_key is the place of its API key. A project with a ceiling has an element after those of the API keys, with its id in p_api_key_id and p_project_id and the ceiling in p_limit_*. p_bytes: artifact_sha256, salt, commitment and leaf_hash, 32 bytes each, then the signature. p_metadata: the JCS texts, one per line. p_metadata_errors, p_idempotency_key, p_request_hash and p_build are null if no submission has any; a submission with errors is invalid. So are p_statement_version, whose elements are null where it is 1, p_statement, one statement per line and an empty line where it is not stored, p_digest, p_shown and p_subjects, whose elements are arrays of hashes as text. p_knows_numbers: whether processes of the caller''s version read rows with numbers. An idempotency key occurs at most once in a call. Times are Unix milliseconds.
Each step decides the outcome of some submissions; those that no step has decided are stored, in order, from first_index on. outcome, resource_id and log_index are null if all are stored, else they have an element per submission, and a null outcome means stored. use has the windows of each API key and project, null if none of its submissions was counted.
p_is_retry: an earlier call with the same ids may have committed; its rows are returned as stored. The commit of a call that found rows or keys waits as that of one that stored some (confirm_durable). Raises ATFRZ if the log is frozen and unique_violation if an id is stored already, and stores nothing if it raises.
Locks: of the idempotency keys (never waited for), then of the rate windows of the API keys and after them of the projects, both in ascending order, then the log''s, last because it is contended most. In this order two calls cannot deadlock. All are held until the transaction ends.';

CREATE OR REPLACE FUNCTION artifact_entry(p_artifact_sha256 bytea, p_project_id text, p_log_index bigint)
 RETURNS bytea
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT substr(p_artifact_sha256, 1, 7) || substr(sha256(p_project_id::bytea), 1, 4)
         || substr(int8send(p_log_index), 4)
$function$;
COMMENT ON FUNCTION artifact_entry(p_artifact_sha256 bytea, p_project_id text, p_log_index bigint) IS 'Returns the index entry of a leaf: 7 bytes of the artifact''s hash, 4 of the SHA-256 of the project''s id, 5 of the log index.
Locks: none.';

CREATE OR REPLACE FUNCTION artifact_parts(p_log_id integer, p_first bigint, p_end bigint)
 RETURNS TABLE(run_id bigint, first_index bigint, end_index bigint)
 LANGUAGE sql
 STABLE ROWS 30
AS $function$
  WITH indexed AS (
    SELECT coalesce((SELECT r.end_index FROM artifact_run r WHERE r.log_id = p_log_id AND r.is_current
                     ORDER BY r.end_index DESC LIMIT 1), 0) AS size
  )
  SELECT NULL::bigint, greatest(p_first, i.size), p_end FROM indexed i WHERE i.size < p_end
  UNION ALL
  SELECT r.id, greatest(p_first, r.first_index), least(p_end, r.end_index) FROM artifact_run r
  WHERE r.log_id = p_log_id AND r.is_current AND r.end_index > p_first AND r.first_index < p_end
$function$;
COMMENT ON FUNCTION artifact_parts(p_log_id integer, p_first bigint, p_end bigint) IS 'Splits a range of a log into the parts of the runs that index it, and the part that no run indexes, with null for the run.
Locks: none.';

CREATE OR REPLACE FUNCTION artifact_projects(p_artifact_sha256 bytea, p_most integer)
 RETURNS TABLE(project_key bytea)
 LANGUAGE plpgsql
 STABLE ROWS 10
 SET enable_seqscan TO 'off'
AS $function$
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
        SELECT * FROM named_submission s WHERE s.log_id = v_run.log_id AND s.log_index = l.leaf LIMIT 1
      ) s;
      EXIT WHEN NOT FOUND;
      RETURN QUERY SELECT v_key;
      v_number := ('x' || encode(v_key, 'hex'))::bit(32)::bigint - 1;
    END LOOP;
  END LOOP;
  RETURN QUERY
    SELECT DISTINCT substr(sha256(coalesce(s.project_id, (
      SELECT n.project_id FROM submission_name n WHERE n.number = s.project_number))::bytea), 1, 4)
    FROM log l
    CROSS JOIN LATERAL (
      SELECT coalesce((SELECT r.end_index FROM artifact_run r WHERE r.log_id = l.id AND r.is_current
                       ORDER BY r.end_index DESC LIMIT 1), 0) AS size
    ) indexed
    CROSS JOIN LATERAL (
      SELECT s.project_id, s.project_number, s.log_id, s.log_index, s.artifact_sha256, s.statement_version FROM submission s
      WHERE s.log_id = l.id AND s.log_index >= indexed.size
      ORDER BY s.log_index DESC LIMIT p_most
    ) s
    WHERE s.artifact_sha256 = p_artifact_sha256 OR s.statement_version = 3 AND coalesce((
      SELECT p_artifact_sha256 = ANY (t.subjects) FROM submission_statement t
      WHERE t.log_id = s.log_id AND t.log_index = s.log_index LIMIT 1), false);
END $function$;
COMMENT ON FUNCTION artifact_projects(p_artifact_sha256 bytea, p_most integer) IS 'Returns the keys in index entries of the projects that have attested an artifact, some of them repeatedly. Of the leaves of each log that no run has, looks at the newest p_most.
Locks: none.';

CREATE OR REPLACE FUNCTION artifact_rows(p_run_id bigint, p_log_id integer, p_first bigint, p_end bigint, p_project_id text, p_artifact_sha256 bytea, p_limit integer)
 RETURNS TABLE(log_index bigint, is_artifact boolean, schema text, submitted_at timestamp with time zone)
 LANGUAGE plpgsql
 STABLE
 SET enable_seqscan TO 'off'
AS $function$
DECLARE
  v_number CONSTANT integer := (
    SELECT n.number FROM submission_name n WHERE n.number = hashtext(p_project_id) AND n.project_id = p_project_id);
BEGIN
  IF p_run_id IS NULL THEN
    RETURN QUERY
      SELECT s.log_index,
             s.artifact_sha256 = p_artifact_sha256 OR s.statement_version = 3 AND coalesce((
               SELECT p_artifact_sha256 = ANY (t.subjects) FROM submission_statement t
               WHERE t.log_id = s.log_id AND t.log_index = s.log_index LIMIT 1), false),
             coalesce(s.schema, (SELECT n.schema FROM submission_name n WHERE n.number = s.schema_number)), s.submitted_at
      FROM submission s
      WHERE (coalesce(s.project_number, hashtext(s.project_id)), s.log_id, s.log_index >> 4)
            >= (hashtext(p_project_id), p_log_id, p_first >> 4)
        AND (coalesce(s.project_number, hashtext(s.project_id)), s.log_id, s.log_index >> 4)
            <= (hashtext(p_project_id), p_log_id, (p_end - 1) >> 4)
        AND ((s.project_id = p_project_id OR s.project_number = v_number)
             AND s.log_index >= p_first AND s.log_index < p_end)::integer <> 0
        AND (s.log_id = p_log_id AND s.log_index >= p_first OR s.log_id = -p_log_id AND s.log_index > p_first)
        AND (s.log_id = p_log_id AND s.log_index < p_end OR s.log_id = -p_log_id AND s.log_index <= p_end)
      ORDER BY coalesce(s.project_number, hashtext(s.project_id)) DESC, s.log_id DESC, s.log_index >> 4 DESC, s.log_index DESC
      LIMIT p_limit;
  ELSE
    RETURN QUERY
      SELECT l.leaf,
             (s.project_id = p_project_id OR s.project_number = v_number) AND (
               s.artifact_sha256 = p_artifact_sha256 OR s.statement_version = 3 AND coalesce((
                 SELECT p_artifact_sha256 = ANY (t.subjects) FROM submission_statement t
                 WHERE t.log_id = s.log_id AND t.log_index = s.log_index LIMIT 1), false)),
             coalesce(s.schema, (SELECT n.schema FROM submission_name n WHERE n.number = s.schema_number)), s.submitted_at
      FROM artifact_run_leaves(p_run_id, artifact_entry(p_artifact_sha256, p_project_id, p_first),
                               artifact_entry(p_artifact_sha256, p_project_id, p_end - 1), p_limit) AS l(leaf)
      CROSS JOIN LATERAL (
        SELECT * FROM submission s WHERE s.log_id = p_log_id AND s.log_index = l.leaf LIMIT 1
      ) s
      ORDER BY l.leaf DESC;
  END IF;
END $function$;
COMMENT ON FUNCTION artifact_rows(p_run_id bigint, p_log_id integer, p_first bigint, p_end bigint, p_project_id text, p_artifact_sha256 bytea, p_limit integer) IS 'Returns the newest p_limit leaves of a part of a log that may be of the project and the artifact, newest first: those with such an entry in the run, or, without a run, all leaves of the project.
Locks: none.';

CREATE OR REPLACE FUNCTION artifact_run_leaves(p_run_id bigint, p_low bytea, p_high bytea, p_limit integer)
 RETURNS SETOF bigint
 LANGUAGE plpgsql
 STABLE
 SET enable_seqscan TO 'off'
AS $function$
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
END $function$;
COMMENT ON FUNCTION artifact_run_leaves(p_run_id bigint, p_low bytea, p_high bytea, p_limit integer) IS 'Returns the log indexes of the entries of a run from p_low to p_high, both of one project and artifact: the newest p_limit, newest first.
Locks: none.';

CREATE OR REPLACE FUNCTION assert_new_ids(p_log_id integer, p_first_index bigint, p_id text[], p_outcome submission_outcome[])
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
DECLARE
  v_from CONSTANT bigint := p_first_index - 4194304;
BEGIN
  -- A range and an order, so that no other index is chosen for a small table.
  PERFORM FROM unnest(p_id, p_outcome) u(id, outcome)
    CROSS JOIN LATERAL (
      SELECT FROM submission s
      WHERE substr(s.id, 5, 15) BETWEEN substr(u.id, 5, 15) AND substr(u.id, 5, 15) AND s.id = u.id
        AND s.log_id = p_log_id AND s.log_index >= v_from
      ORDER BY substr(s.id, 5, 15) LIMIT 1
    ) s
    WHERE u.outcome IS NULL LIMIT 1;
  IF FOUND THEN
    RAISE unique_violation USING MESSAGE = 'a submission with one of the ids is stored already';
  END IF;
END $function$;
COMMENT ON FUNCTION assert_new_ids(p_log_id integer, p_first_index bigint, p_id text[], p_outcome submission_outcome[]) IS 'Step of append_submissions, under the lock of the log, with which all rows that could have the ids are visible: raises unique_violation if a row without an outcome is stored already. In place of a unique index, which would have whole ids. Looks at the newest 4,194,304 leaves, more than a log takes in the two minutes before p_first_index: another call with an id, which its process makes, ends within the 10 s that the process waits.
Locks: none.';

CREATE OR REPLACE FUNCTION audit_id_at(p_at timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT 'aud_' || string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ',
    ((floor(extract(epoch FROM p_at) * 1000)::bigint >> (5 * n)) & 31)::int + 1, 1), '' ORDER BY n DESC)
  FROM generate_series(0, 9) n
$function$;
COMMENT ON FUNCTION audit_id_at(p_at timestamp with time zone) IS 'Returns the prefix of the ids of audit entries made at p_at; ids of earlier entries are less.
Locks: none.';

CREATE OR REPLACE FUNCTION claim_idempotency_keys(p_api_key_id text[], p_key text[], p_request_hash bytea[], p_retention_ms bigint, INOUT p_outcome submission_outcome[], INOUT p_resource_id text[])
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
DECLARE
  r record;
BEGIN
  FOR r IN
    SELECT u.n FROM unnest(p_api_key_id, p_key, p_outcome) WITH ORDINALITY u(api_key_id, key, outcome, n)
    WHERE u.key IS NOT NULL AND u.outcome IS NULL
      AND NOT pg_try_advisory_xact_lock(hashtextextended(u.api_key_id || ' ' || u.key, 0))
  LOOP
    p_outcome[r.n] := 'busy';
  END LOOP;
  FOR r IN
    SELECT u.n, k.resource_id, k.request_hash = u.request_hash AS is_same,
           k.created_at > clock_timestamp() - p_retention_ms * interval '1 millisecond' AS is_valid
    FROM unnest(p_api_key_id, p_key, p_request_hash, p_outcome)
      WITH ORDINALITY u(api_key_id, key, request_hash, outcome, n)
    CROSS JOIN LATERAL (
      SELECT k.resource_id, k.request_hash, k.created_at FROM idempotency_key k
      WHERE k.api_key_id = u.api_key_id AND k.key = u.key LIMIT 1
    ) k
    WHERE u.outcome IS NULL
  LOOP
    IF r.is_valid THEN
      p_outcome[r.n] := CASE WHEN r.is_same THEN 'replayed' ELSE 'key_reused' END;
      p_resource_id[r.n] := CASE WHEN r.is_same THEN r.resource_id END;
    ELSE
      DELETE FROM idempotency_key k WHERE k.api_key_id = p_api_key_id[r.n] AND k.key = p_key[r.n];
    END IF;
  END LOOP;
END $function$;
COMMENT ON FUNCTION claim_idempotency_keys(p_api_key_id text[], p_key text[], p_request_hash bytea[], p_retention_ms bigint, INOUT p_outcome submission_outcome[], INOUT p_resource_id text[]) IS 'Second step of append_submissions: claims the idempotency keys of the rows without an outcome. A row whose key another transaction holds becomes busy. A row whose key was used within p_retention_ms becomes replayed, with the resource_id of the earlier request, or key_reused if the requests differ. Deletes expired records of the other keys, which have none then. A null key claims nothing.
Locks: the advisory lock of each key (64 bits, a hash of API key id and key), never waited for; expired records.';

CREATE OR REPLACE FUNCTION claim_webhook_deliveries(p_webhook_id text, p_lease bigint, p_lease_ms bigint, p_visible_ms bigint, p_max integer, p_ids text[])
 RETURNS SETOF webhook_delivery
 LANGUAGE plpgsql
 ROWS 32
 SET enable_seqscan TO 'off'
 SET enable_sort TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
#variable_conflict use_column
DECLARE
  v_webhook webhook;
  v_tokens double precision;
  v_now timestamptz;
  v_room integer;
  v_claimed integer;
  v_made integer := 0;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE webhook w SET leased_until = clock_timestamp() + p_lease_ms * interval '1 millisecond'
    WHERE w.id = p_webhook_id AND w.lease = p_lease AND w.status <> 3 RETURNING * INTO v_webhook;
  IF NOT FOUND THEN RETURN; END IF;

  SELECT l.tokens, l.locked_at INTO v_tokens, v_now FROM lock_webhook_tokens(v_webhook.project_id) l;
  v_room := least(p_max, floor(v_tokens)::integer);
  IF v_room < 1 THEN
    UPDATE webhook_tokens t SET at = v_now WHERE t.project_id = v_webhook.project_id AND t.at > v_now;
    RETURN;
  END IF;

  RETURN QUERY
    UPDATE webhook_delivery d
    SET attempt = d.attempt + 1, next_attempt_at = v_now + p_visible_ms * interval '1 millisecond'
    FROM (SELECT c.ctid AS row FROM webhook_delivery c
          WHERE c.webhook_id = p_webhook_id AND c.status = 1 AND c.next_attempt_at <= v_now
            AND (v_webhook.status = 1 OR c.transition IS NULL)
          ORDER BY c.next_attempt_at LIMIT v_room FOR UPDATE SKIP LOCKED) due
    WHERE d.ctid = due.row RETURNING d.*;
  GET DIAGNOSTICS v_claimed = ROW_COUNT;

  IF v_webhook.status = 1 AND v_claimed < v_room THEN
    RETURN QUERY SELECT * FROM make_webhook_deliveries(
      p_webhook_id, v_webhook.project_id, v_now, p_visible_ms, v_room - v_claimed, p_ids);
    GET DIAGNOSTICS v_made = ROW_COUNT;
  END IF;

  UPDATE webhook_tokens t SET tokens = v_tokens - v_claimed - v_made, at = v_now
    WHERE t.project_id = v_webhook.project_id;
END $function$;
COMMENT ON FUNCTION claim_webhook_deliveries(p_webhook_id text, p_lease bigint, p_lease_ms bigint, p_visible_ms bigint, p_max integer, p_ids text[]) IS 'Claims up to p_max due deliveries of a subscription, one project token each: first those that wait for another attempt, then new ones (make_webhook_deliveries), whose ids are p_ids, p_max of them. A claimed delivery is due again after p_visible_ms unless its attempt is recorded before. Renews the lease. Returns nothing if the lease is not p_lease any more or the subscription was deleted. Of a disabled subscription only tests are due. Does not wait for the commit to be flushed: a lost claim is made again.
Locks: the subscription, then the project''s tokens, then deliveries; those that another transaction holds are skipped.';

CREATE OR REPLACE FUNCTION confirm_durable()
 RETURNS void
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF current_setting('transaction_read_only')::boolean THEN
    RAISE read_only_sql_transaction USING MESSAGE = 'a read-only server cannot confirm that what was read is durable';
  END IF;
  PERFORM pg_logical_emit_message(true, 'attest', '');
END $function$;
COMMENT ON FUNCTION confirm_durable() IS 'Makes the commit of this transaction wait as that of a write does. Its WAL record follows those of all rows that the transaction has read, so they are as durable as it when the commit returns. Raises read_only_sql_transaction on a server that takes no writes, such as a demoted primary.
Locks: none.';

CREATE OR REPLACE FUNCTION count_metadata_changes()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO metadata_change (project_id, changes)
    SELECT p.id, count(*) FROM changed c CROSS JOIN LATERAL (
      SELECT coalesce(c.project_id, (SELECT n.project_id FROM submission_name n WHERE n.number = c.project_number)) AS id) p
    GROUP BY p.id ORDER BY p.id
    ON CONFLICT (project_id) DO UPDATE SET changes = metadata_change.changes + excluded.changes;
  RETURN NULL;
END $function$;
COMMENT ON FUNCTION count_metadata_changes() IS 'Trigger of submission: counts corrections and redactions per project in metadata_change.
Locks: the rows of metadata_change, in ascending order of project id, until the change commits: who reads a number sees every change up to it.';

CREATE OR REPLACE FUNCTION find_artifact(p_project_id text, p_artifact_sha256 bytea, p_schema text, p_status smallint, p_after timestamp with time zone, p_before timestamp with time zone, p_log_ids integer[], p_ends bigint[], p_limit integer, p_most integer, p_build text DEFAULT NULL::text)
 RETURNS TABLE(log_id integer, log_index bigint, is_match boolean)
 LANGUAGE plpgsql
 STABLE ROWS 50
 SET enable_seqscan TO 'off'
AS $function$
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
           AND v_row.submitted_at < coalesce(p_before, 'infinity')
           AND (p_build IS NULL OR p_build = (
             SELECT s.build FROM submission s WHERE s.log_id = v_part.log_id AND s.log_index = v_end LIMIT 1)) THEN
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
END $function$;
COMMENT ON FUNCTION find_artifact(p_project_id text, p_artifact_sha256 bytea, p_schema text, p_status smallint, p_after timestamp with time zone, p_before timestamp with time zone, p_log_ids integer[], p_ends bigint[], p_limit integer, p_most integer, p_build text) IS 'Finds a project''s leaves of an artifact that match the filters (null: any), newest first, at most p_limit, below p_ends in p_log_ids. Looks at p_most leaves: if they do not suffice, the last row is where it stopped, with is_match false.
Locks: none.';

CREATE OR REPLACE FUNCTION find_public_artifact(p_artifact_sha256 bytea, p_default boolean, p_limit integer, p_most integer)
 RETURNS TABLE(id text, project_id text, environment smallint, log_id integer, log_index bigint, submitted_at timestamp with time zone, is_match boolean)
 LANGUAGE plpgsql
 STABLE ROWS 50
 SET enable_seqscan TO 'off'
AS $function$
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
END $function$;
COMMENT ON FUNCTION find_public_artifact(p_artifact_sha256 bytea, p_default boolean, p_limit integer, p_most integer) IS 'Finds the newest p_limit witnessed and partial submissions of an artifact, newest first, of the projects that are looked up in public. Rows whose is_match is false come first: there the search looked at p_most leaves and stopped.
Locks: none.';

CREATE OR REPLACE FUNCTION find_statement(p_log_id integer, p_log_index bigint)
 RETURNS TABLE(digest bytea, text text, shown text, erased_at timestamp with time zone)
 LANGUAGE plpgsql
 STABLE ROWS 1
 SET enable_seqscan TO 'off'
AS $function$
BEGIN
  RETURN QUERY
    SELECT s.digest, s.text, s.shown, s.erased_at FROM submission_statement s
    WHERE s.log_id = p_log_id AND s.log_index = p_log_index;
END $function$;
COMMENT ON FUNCTION find_statement(p_log_id integer, p_log_index bigint) IS 'Returns the stored statement of a leaf. A function, so that no plan of the time when there were few reads all of them.
Locks: none.';

CREATE OR REPLACE FUNCTION find_stored_submissions(p_id text[], INOUT p_outcome submission_outcome[], INOUT p_log_index bigint[])
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
DECLARE
  r record;
BEGIN
  FOR r IN
    SELECT u.n, s.log_index FROM unnest(p_id) WITH ORDINALITY u(id, n)
    CROSS JOIN LATERAL (
      SELECT s.log_index FROM submission s WHERE substr(s.id, 5, 15) = substr(u.id, 5, 15) AND s.id = u.id LIMIT 1
    ) s
  LOOP
    p_outcome[r.n] := 'stored';
    p_log_index[r.n] := r.log_index;
  END LOOP;
END $function$;
COMMENT ON FUNCTION find_stored_submissions(p_id text[], INOUT p_outcome submission_outcome[], INOUT p_log_index bigint[]) IS 'First step of append_submissions, for a retry: looks up the rows that an earlier call stored. Sets their outcome to stored, and their log_index.
Locks: none.';

CREATE OR REPLACE FUNCTION keep_audit_partitions(p_retention_ms bigint, p_now timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET lock_timeout TO '2s'
AS $function$
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
END $function$;
COMMENT ON FUNCTION keep_audit_partitions(p_retention_ms bigint, p_now timestamp with time zone) IS 'Drops the partitions of audit_entry that hold nothing younger than p_retention_ms at p_now, and adds those of the next three months. A month of which the default partition has entries already stays there. Does nothing if another transaction runs it.
Locks: an advisory lock of its own, then audit_entry exclusively, for at most two seconds of waiting.';

CREATE OR REPLACE FUNCTION leaf_stretches(p_log_id integer, p_status smallint, p_after timestamp with time zone, p_before timestamp with time zone, p_end bigint)
 RETURNS TABLE(first_index bigint, end_index bigint)
 LANGUAGE sql
 STABLE ROWS 2
AS $function$
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
$function$;
COMMENT ON FUNCTION leaf_stretches(p_log_id integer, p_status smallint, p_after timestamp with time zone, p_before timestamp with time zone, p_end bigint) IS 'Returns the stretches of a log below p_end that can hold leaves of a submission status (null: any), submitted after p_after and before p_before (null: any). Disjoint, in no order. Every leaf in a stretch has the status; nearly every one is within the times.
Locks: none.';

CREATE OR REPLACE FUNCTION lock_webhook_tokens(p_project_id text, OUT tokens double precision, OUT locked_at timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
DECLARE
  v_bucket record;
BEGIN
  INSERT INTO webhook_tokens SELECT p.id, p.webhook_deliveries_burst, clock_timestamp()
    FROM project p WHERE p.id = p_project_id ON CONFLICT DO NOTHING;
  SELECT t.tokens, t.at, p.webhook_deliveries_per_second AS rate, p.webhook_deliveries_burst AS burst INTO v_bucket
    FROM webhook_tokens t JOIN project p ON p.id = t.project_id
    WHERE t.project_id = p_project_id FOR UPDATE OF t;
  locked_at := clock_timestamp();
  tokens := least(v_bucket.burst,
                  v_bucket.tokens + greatest(0, extract(epoch FROM locked_at - v_bucket.at)) * v_bucket.rate);
END $function$;
COMMENT ON FUNCTION lock_webhook_tokens(p_project_id text, OUT tokens double precision, OUT locked_at timestamp with time zone) IS 'Locks the token bucket of a project and returns its tokens at that time, refilled; the caller stores what it leaves. A clock that steps back adds no tokens.
Locks: the project''s row of webhook_tokens.';

CREATE OR REPLACE FUNCTION make_webhook_deliveries(p_webhook_id text, p_project_id text, p_now timestamp with time zone, p_visible_ms bigint, p_max integer, p_ids text[])
 RETURNS SETOF webhook_delivery
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
DECLARE
  v_number CONSTANT integer := (
    SELECT n.number FROM submission_name n WHERE n.number = hashtext(p_project_id) AND n.project_id = p_project_id);
  v_made integer := 0;
  v_count integer;
  v_last bigint;
  r webhook_range;
BEGIN
  FOR r IN SELECT * FROM webhook_range g WHERE g.webhook_id = p_webhook_id
           ORDER BY g.log_id, g.tree_size, g.transition LIMIT cardinality(p_ids) LOOP
    EXIT WHEN v_made >= p_max;
    RETURN QUERY
      INSERT INTO webhook_delivery (webhook_id, id, submission_id, log_id, tree_size, transition, attempt,
                                    created_at, next_attempt_at)
      SELECT p_webhook_id, p_ids[v_made + s.n], s.id, r.log_id, r.tree_size, r.transition, 1,
             p_now, p_now + p_visible_ms * interval '1 millisecond'
      FROM (SELECT s.id, row_number() OVER (ORDER BY s.log_index) AS n FROM submission s
            WHERE (coalesce(s.project_number, hashtext(s.project_id)), s.log_id, s.log_index >> 4)
                  >= (hashtext(p_project_id), r.log_id, r.next_index >> 4)
              AND (coalesce(s.project_number, hashtext(s.project_id)), s.log_id, s.log_index >> 4)
                  <= (hashtext(p_project_id), r.log_id, r.last_index >> 4)
              AND ((s.project_id = p_project_id OR s.project_number = v_number)
                   AND s.log_index BETWEEN r.next_index AND r.last_index)::integer <> 0
              AND (s.log_id = r.log_id AND s.log_index >= r.next_index
                   OR s.log_id = -r.log_id AND s.log_index > r.next_index)
              AND (s.log_id = r.log_id AND s.log_index <= r.last_index
                   OR s.log_id = -r.log_id AND s.log_index < r.last_index)
            ORDER BY coalesce(s.project_number, hashtext(s.project_id)), s.log_id, s.log_index >> 4, s.log_index
            LIMIT p_max - v_made) s
      RETURNING *;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    v_made := v_made + v_count;
    IF v_made >= p_max THEN
      SELECT s.log_index INTO v_last
        FROM (SELECT d.submission_id AS id FROM webhook_delivery d
              WHERE d.webhook_id = p_webhook_id AND d.id = p_ids[v_made]) d
        CROSS JOIN LATERAL (
          SELECT s.log_index FROM submission s WHERE substr(s.id, 5, 15) = substr(d.id, 5, 15) AND s.id = d.id LIMIT 1
        ) s;
      UPDATE webhook_range g SET next_index = v_last + 1
        WHERE g.webhook_id = p_webhook_id AND g.log_id = r.log_id AND g.tree_size = r.tree_size
          AND g.transition = r.transition;
    ELSE
      DELETE FROM webhook_range g
        WHERE g.webhook_id = p_webhook_id AND g.log_id = r.log_id AND g.tree_size = r.tree_size
          AND g.transition = r.transition;
    END IF;
  END LOOP;
END $function$;
COMMENT ON FUNCTION make_webhook_deliveries(p_webhook_id text, p_project_id text, p_now timestamp with time zone, p_visible_ms bigint, p_max integer, p_ids text[]) IS 'Makes up to p_max deliveries from the ranges of a subscription, oldest first, under the ids given, and returns them as claimed at p_now. A range that is used up is deleted; of the last one the next index is stored.
Locks: the ranges that it changes. The caller holds the subscription.';

CREATE OR REPLACE FUNCTION note_evidence()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
BEGIN
  INSERT INTO export_change (log_id, first_index, end_index)
    SELECT NEW.log_id, coalesce(max(e.tree_size), 0), NEW.tree_size FROM evidence e
    WHERE e.log_id = NEW.log_id AND e.witness = NEW.witness AND e.tree_size < NEW.tree_size;
  RETURN NULL;
END $function$;
COMMENT ON FUNCTION note_evidence() IS 'Records for exports the leaves that new evidence covers and earlier evidence of its witness does not.
Locks: none.';

CREATE OR REPLACE FUNCTION note_metadata_changes()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
BEGIN
  INSERT INTO export_change (log_id, first_index, end_index, project_id)
    SELECT c.log_id, c.log_index, c.log_index + 1,
           coalesce(c.project_id, (SELECT n.project_id FROM submission_name n WHERE n.number = c.project_number))
    FROM changed c;
  RETURN NULL;
END $function$;
COMMENT ON FUNCTION note_metadata_changes() IS 'Records the leaves of changed submissions for exports.
Locks: none.';

CREATE OR REPLACE FUNCTION number_names(p_knows_numbers boolean, p_outcome submission_outcome[], p_key integer[], p_project_id text[], p_schema text[])
 RETURNS boolean
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
DECLARE
  v_number integer[];
  v_project_id text[];
  v_schema text[];
BEGIN
  IF NOT p_knows_numbers THEN
    UPDATE submission_numbering SET since = clock_timestamp() + interval '24 hours'
      WHERE since < clock_timestamp() + interval '23 hours';
    RETURN false;
  END IF;
  IF (SELECT g.since > clock_timestamp() FROM submission_numbering g) THEN
    RETURN false;
  END IF;
  SELECT array_agg(w.number ORDER BY w.number, u.key, w.schema),
         array_agg(p_project_id[u.key] ORDER BY w.number, u.key, w.schema),
         array_agg(w.schema ORDER BY w.number, u.key, w.schema)
    INTO v_number, v_project_id, v_schema
    FROM (SELECT DISTINCT u.key, u.schema FROM unnest(p_outcome, p_key, p_schema) u(outcome, key, schema)
          WHERE u.outcome IS NULL) u
    CROSS JOIN LATERAL (VALUES (hashtext(p_project_id[u.key]), ''),
                               (hashtext(p_project_id[u.key] || E'\n' || u.schema), u.schema)) w(number, schema)
    WHERE NOT EXISTS (SELECT FROM submission_name n WHERE n.number = w.number AND n.project_id = p_project_id[u.key]
                      AND n.schema = w.schema LIMIT 1);
  IF v_number IS NULL THEN
    RETURN true;
  END IF;
  INSERT INTO submission_name SELECT * FROM unnest(v_number, v_project_id, v_schema) ON CONFLICT DO NOTHING;
  RETURN NOT EXISTS (
    SELECT FROM unnest(v_number, v_project_id, v_schema) w(number, project_id, schema)
    WHERE NOT EXISTS (SELECT FROM submission_name n WHERE n.number = w.number AND n.project_id = w.project_id
                      AND n.schema = w.schema LIMIT 1));
END $function$;
COMMENT ON FUNCTION number_names(p_knows_numbers boolean, p_outcome submission_outcome[], p_key integer[], p_project_id text[], p_schema text[]) IS 'Step of append_submissions: gives numbers to the projects and schemas of the rows without an outcome. Returns whether the rows get them: not within a day of a call of a process that does not know them, which is noted, nor if another name has one of them.
Locks: the row of that note, once an hour; the new numbers, in ascending order, after all others of a call, until the transaction ends: another log''s call may wait for one.';

CREATE OR REPLACE FUNCTION record_idempotency_keys(p_api_key_id text[], p_key text[], p_request_hash bytea[], p_resource_id text[], p_outcome submission_outcome[])
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
BEGIN
  INSERT INTO idempotency_key (api_key_id, key, request_hash, resource_id, created_at)
  SELECT u.api_key_id, u.key, u.request_hash, u.resource_id, clock_timestamp()
  FROM unnest(p_api_key_id, p_key, p_request_hash, p_resource_id, p_outcome)
    AS u(api_key_id, key, request_hash, resource_id, outcome)
  WHERE u.key IS NOT NULL AND u.outcome IS NULL;
END $function$;
COMMENT ON FUNCTION record_idempotency_keys(p_api_key_id text[], p_key text[], p_request_hash bytea[], p_resource_id text[], p_outcome submission_outcome[]) IS 'Last step of append_submissions: records the idempotency keys of the rows without an outcome. The caller holds their advisory locks, and they have no record (claim_idempotency_keys).
Locks: the rows that it writes.';

CREATE OR REPLACE FUNCTION record_webhook_attempts(p_attempts json, p_pending smallint, p_delivered smallint)
 RETURNS TABLE(id text, lease bigint, failing_ms double precision)
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
#variable_conflict use_column
DECLARE
  -- Of each attempt; NULL if a newer one was made, the delivery is not pending, or the attempt was recorded before.
  v_rows tid[];
BEGIN
  SELECT array_agg(c.row ORDER BY m.ordinality) INTO v_rows
  FROM ROWS FROM (json_to_recordset(p_attempts) AS (webhook_id text, delivery_id text, number integer, status smallint,
                                                  step integer))
    WITH ORDINALITY m
  LEFT JOIN LATERAL (
    SELECT d.ctid AS row FROM webhook_delivery d
    WHERE d.webhook_id = m.webhook_id AND d.id = m.delivery_id AND d.attempt = m.number AND d.status = p_pending
      AND (m.status = p_delivered OR d.step = coalesce(m.step, d.step))
    FOR UPDATE) c ON true;

  RETURN QUERY
  WITH made AS (
    SELECT * FROM ROWS FROM (
      json_to_recordset(p_attempts)
        AS (webhook_id text, delivery_id text, number integer, lease bigint, at timestamptz, duration_ms integer,
            status_code smallint, error text, answer text, url text, status smallint, retry_ms bigint),
      unnest(v_rows))
    AS a(webhook_id, delivery_id, number, lease, at, duration_ms, status_code, error, answer, url, status, retry_ms,
         row)),
  kept AS (
    INSERT INTO webhook_attempt
    SELECT delivery_id, number, at, duration_ms, status_code, error, answer, url FROM made ON CONFLICT DO NOTHING),
  moved AS (
    UPDATE webhook_delivery d SET
      status = m.status,
      step = CASE WHEN m.status = p_delivered THEN d.step ELSE d.step + 1 END,
      delivered_at = CASE WHEN m.status = p_delivered THEN clock_timestamp() END,
      next_attempt_at = CASE WHEN m.retry_ms IS NULL THEN d.next_attempt_at
                             ELSE clock_timestamp() + m.retry_ms * interval '1 millisecond' END
    FROM made m WHERE d.ctid = m.row
    RETURNING d.webhook_id, m.lease, d.status, d.transition),
  health AS (
    SELECT webhook_id, lease, bool_or(status = p_delivered) AS any_delivered,
      bool_or(status <> p_delivered) AS any_failed
    FROM moved WHERE transition IS NOT NULL GROUP BY webhook_id, lease),
  locked AS (
    SELECT w.id, h.any_delivered, h.any_failed FROM webhook w JOIN health h ON h.webhook_id = w.id AND h.lease = w.lease
    WHERE h.any_failed OR w.failing_since IS NOT NULL ORDER BY w.id FOR UPDATE OF w)
  UPDATE webhook w
  SET failing_since = CASE WHEN l.any_delivered THEN NULL ELSE coalesce(w.failing_since, clock_timestamp()) END
  FROM locked l WHERE w.id = l.id
  RETURNING w.id, w.lease,
    coalesce(extract(epoch FROM clock_timestamp() - w.failing_since) * 1000, 0)::double precision;
END $function$;
COMMENT ON FUNCTION record_webhook_attempts(p_attempts json, p_pending smallint, p_delivered smallint) IS 'Records attempts, the status of their deliveries, and whether their subscriptions are failing. An attempt that is not the newest of its delivery, or was recorded before, is stored once and changes nothing else. Tests, and attempts under an earlier lease, do not count for the endpoint''s health. Returns the subscriptions with a failure, or that had been failing, and for how long they have been without a success.
Locks: the deliveries, in the order of p_attempts, then the subscriptions, in ascending order of id.';

CREATE OR REPLACE FUNCTION refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'ATAPP';
END $function$;
COMMENT ON FUNCTION refuse_change() IS 'Trigger of append-only tables: raises ATAPP.
Locks: none.';

CREATE OR REPLACE FUNCTION release_webhook(p_webhook_id text, p_lease bigint)
 RETURNS double precision
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
DECLARE
  v_webhook webhook;
  v_due timestamptz;
  v_token timestamptz;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT * INTO v_webhook FROM webhook w WHERE w.id = p_webhook_id AND w.lease = p_lease FOR UPDATE;
  IF NOT FOUND THEN RETURN NULL; END IF;
  SELECT CASE
    WHEN v_webhook.status = 3 THEN NULL
    WHEN v_webhook.status = 1 AND (v_webhook.redeliver_since IS NOT NULL
         OR EXISTS (SELECT FROM webhook_range g WHERE g.webhook_id = p_webhook_id)) THEN clock_timestamp()
    ELSE (SELECT min(d.next_attempt_at) FROM webhook_delivery d
          WHERE d.webhook_id = p_webhook_id AND d.status = 1 AND (v_webhook.status = 1 OR d.transition IS NULL))
    END INTO v_due;
  SELECT least(t.at, clock_timestamp()) + greatest(0, (1 - t.tokens) / greatest(p.webhook_deliveries_per_second, 0.001)) * interval '1 second'
    INTO v_token FROM webhook_tokens t JOIN project p ON p.id = t.project_id WHERE t.project_id = v_webhook.project_id;
  v_due := CASE WHEN v_due IS NULL THEN NULL ELSE greatest(v_due, v_token) END;
  UPDATE webhook w SET leased_until = NULL, due_at = v_due WHERE w.id = p_webhook_id;
  RETURN extract(epoch FROM v_due - clock_timestamp()) * 1000;
END $function$;
COMMENT ON FUNCTION release_webhook(p_webhook_id text, p_lease bigint) IS 'Ends a lease and returns the milliseconds until something of the subscription is due; null if nothing is, or the lease is not p_lease any more. What only lacks a project token is due when there is one. Does not wait for the commit to be flushed.
Locks: the subscription, before anything is read: what others make due meanwhile is either seen or sets due_at afterwards.';

CREATE OR REPLACE FUNCTION remove_submissions(p_log_id integer, p_first bigint, p_end bigint)
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
BEGIN
  DELETE FROM signature_stamp WHERE log_id = p_log_id AND log_index >= p_first AND log_index < p_end;
  DELETE FROM submission_statement WHERE log_id = p_log_id AND log_index >= p_first AND log_index < p_end;
  DELETE FROM submission WHERE log_id = p_log_id AND log_index >= p_first AND log_index < p_end;
END $function$;
COMMENT ON FUNCTION remove_submissions(p_log_id integer, p_first bigint, p_end bigint) IS 'Removes the rows of the leaves [p_first, p_end) of a log, which an archive has.
Locks: the rows that it removes.';

CREATE OR REPLACE FUNCTION return_tokens(p_api_key_id text, p_bucket smallint, p_count bigint, p_use window_use)
 RETURNS window_use
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
BEGIN
  p_use.n_second := p_use.n_second - p_count;
  p_use.n_hour := p_use.n_hour - p_count;
  p_use.n_day := p_use.n_day - p_count;
  UPDATE rate_counter r SET n_second = p_use.n_second, n_hour = p_use.n_hour, n_day = p_use.n_day
    WHERE r.api_key_id = p_api_key_id AND r.bucket = p_bucket AND r.second = p_use.second;
  RETURN p_use;
END $function$;
COMMENT ON FUNCTION return_tokens(p_api_key_id text, p_bucket smallint, p_count bigint, p_use window_use) IS 'Takes calls back that take_tokens has counted in this transaction, with p_use as it returned it. Returns the use of the windows after it.
Locks: none; the caller holds that of take_tokens.';

CREATE OR REPLACE FUNCTION status_stretches(p_log_id integer, p_status smallint, p_end bigint)
 RETURNS TABLE(first_index bigint, end_index bigint)
 LANGUAGE sql
 STABLE ROWS 2
AS $function$
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
$function$;
COMMENT ON FUNCTION status_stretches(p_log_id integer, p_status smallint, p_end bigint) IS 'Returns the stretches of a log below p_end whose batches have a status, newest first. Comparisons of whole rows leave the planner one index to choose, whatever its statistics say of a rare status.
Locks: none.';

CREATE OR REPLACE FUNCTION store_rows(p_log_id integer, p_knows_numbers boolean, p_outcome submission_outcome[], p_log_index bigint[], p_key integer[], p_project_id text[], p_id text[], p_submitted_ms bigint[], p_schema text[], p_dsse_key_id integer[], p_bytes bytea[], p_metadata text[], p_metadata_errors text[], p_build text[], p_statement_version smallint[])
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
DECLARE
  v_is_numbered CONSTANT boolean := number_names(p_knows_numbers, p_outcome, p_key, p_project_id, p_schema);
BEGIN
  INSERT INTO submission (log_id, log_index, id, project_id, schema, project_number, schema_number, submitted_at, dsse_key_id,
    metadata, metadata_state, metadata_errors, artifact_sha256, salt, commitment, leaf_hash, signature, build,
    statement_version)
  SELECT p_log_id, u.log_index, u.id, CASE WHEN NOT v_is_numbered THEN p_project_id[u.key] END,
         CASE WHEN NOT v_is_numbered THEN u.schema END, CASE WHEN v_is_numbered THEN hashtext(p_project_id[u.key]) END,
         CASE WHEN v_is_numbered THEN hashtext(p_project_id[u.key] || E'\n' || u.schema) END,
         timestamptz 'epoch' + u.submitted_ms * interval '1 millisecond', u.dsse_key_id,
         u.metadata, CASE WHEN u.metadata_errors IS NULL THEN 1 ELSE 2 END, -- MetadataState
         u.metadata_errors, substring(u.bytes FROM 1 FOR 32),
         CASE WHEN u.statement_version IS DISTINCT FROM 3 THEN substring(u.bytes FROM 33 FOR 32) END,
         CASE WHEN u.statement_version = 3 THEN '' ELSE substring(u.bytes FROM 65 FOR 32) END,
         substring(u.bytes FROM 97 FOR 32), substring(u.bytes FROM 129), u.build, coalesce(u.statement_version, 1)
  FROM unnest(p_outcome, p_log_index, p_key, p_id, p_submitted_ms, p_schema, p_dsse_key_id, p_bytes, p_metadata,
              p_metadata_errors, p_build, p_statement_version)
    AS u(outcome, log_index, key, id, submitted_ms, schema, dsse_key_id, bytes, metadata, metadata_errors, build,
         statement_version)
  WHERE u.outcome IS NULL;
END $function$;
COMMENT ON FUNCTION store_rows(p_log_id integer, p_knows_numbers boolean, p_outcome submission_outcome[], p_log_index bigint[], p_key integer[], p_project_id text[], p_id text[], p_submitted_ms bigint[], p_schema text[], p_dsse_key_id integer[], p_bytes bytea[], p_metadata text[], p_metadata_errors text[], p_build text[], p_statement_version smallint[]) IS 'Step of append_submissions: stores the rows without an outcome, with numbers in place of names if number_names says so.
Locks: those of number_names.';

CREATE OR REPLACE FUNCTION store_statements(p_log_id integer, p_outcome submission_outcome[], p_log_index bigint[], p_statement_version smallint[], p_statement text, p_digest bytea[], p_shown text[], p_subjects text[])
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
BEGIN
  IF p_statement IS NULL THEN
    RETURN;
  END IF;
  INSERT INTO submission_statement (log_id, log_index, digest, text, shown, subjects)
  SELECT p_log_id, u.log_index, u.digest, u.text, u.shown, u.subjects::bytea[]
  FROM unnest(p_outcome, p_log_index, p_statement_version, p_digest, string_to_array(p_statement, E'\n'), p_shown,
              p_subjects)
    AS u(outcome, log_index, statement_version, digest, text, shown, subjects)
  WHERE u.outcome IS NULL AND u.statement_version > 1;
END $function$;
COMMENT ON FUNCTION store_statements(p_log_id integer, p_outcome submission_outcome[], p_log_index bigint[], p_statement_version smallint[], p_statement text, p_digest bytea[], p_shown text[], p_subjects text[]) IS 'Step of append_submissions: stores the statements of the rows without an outcome that are more than their row, if p_statement is not null.
Locks: the rows that it writes.';

CREATE OR REPLACE FUNCTION take_key_tokens(p_key integer[], p_api_key_id text[], p_limit_second bigint[], p_limit_hour bigint[], p_limit_day bigint[], INOUT p_outcome submission_outcome[], OUT p_use window_use[])
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
DECLARE
  c_bucket CONSTANT smallint := 2; -- BUCKET_SUBMISSIONS
  v_use window_use;
  v_granted bigint;
  v_over bigint;
  r record;
BEGIN
  p_use := array_fill(NULL::window_use, ARRAY[cardinality(p_api_key_id)]);
  FOR r IN
    SELECT u.key, count(*) AS wanted FROM unnest(p_key, p_outcome) AS u(key, outcome)
    WHERE u.outcome IS NULL GROUP BY u.key ORDER BY p_api_key_id[u.key], u.key
  LOOP
    SELECT t.granted, t.second, t.n_second, t.n_hour, t.n_day
      INTO v_granted, v_use.second, v_use.n_second, v_use.n_hour, v_use.n_day
      FROM take_tokens(p_api_key_id[r.key], c_bucket, r.wanted,
                       p_limit_second[r.key], p_limit_hour[r.key], p_limit_day[r.key]) t;
    p_use[r.key] := v_use;
    v_over := r.wanted - v_granted;
    FOR v_n IN REVERSE cardinality(p_key)..1 LOOP
      EXIT WHEN v_over = 0;
      IF p_key[v_n] = r.key AND p_outcome[v_n] IS NULL THEN
        p_outcome[v_n] := 'limited';
        v_over := v_over - 1;
      END IF;
    END LOOP;
  END LOOP;
END $function$;
COMMENT ON FUNCTION take_key_tokens(p_key integer[], p_api_key_id text[], p_limit_second bigint[], p_limit_hour bigint[], p_limit_day bigint[], INOUT p_outcome submission_outcome[], OUT p_use window_use[]) IS 'Third step of append_submissions: counts the rows without an outcome in the windows of their API keys. p_key is the place of each row''s API key in the arrays after it. The rows of a key beyond its limits become limited, the last first. p_use has the windows of each key, null if none of its rows was counted.
Locks: those of take_tokens, in ascending order of API key id.';

CREATE OR REPLACE FUNCTION take_project_tokens(p_key integer[], p_api_key_id text[], p_project_id text[], p_limit_second bigint[], p_limit_hour bigint[], p_limit_day bigint[], INOUT p_outcome submission_outcome[], INOUT p_use window_use[])
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
DECLARE
  c_bucket CONSTANT smallint := 2; -- BUCKET_SUBMISSIONS
  v_place integer[];
  v_returned bigint[];
  v_use window_use;
  v_granted bigint;
  v_over bigint;
  r record;
BEGIN
  SELECT array_agg(array_position(p_api_key_id, u.project_id) ORDER BY u.n) INTO v_place
    FROM unnest(p_project_id) WITH ORDINALITY u(project_id, n);
  FOR r IN
    SELECT v_place[u.key] AS place, count(*) AS wanted FROM unnest(p_key, p_outcome) AS u(key, outcome)
    WHERE u.outcome IS NULL AND v_place[u.key] IS NOT NULL
    GROUP BY v_place[u.key] ORDER BY p_api_key_id[v_place[u.key]]
  LOOP
    SELECT t.granted, t.second, t.n_second, t.n_hour, t.n_day
      INTO v_granted, v_use.second, v_use.n_second, v_use.n_hour, v_use.n_day
      FROM take_tokens(p_api_key_id[r.place], c_bucket, r.wanted,
                       p_limit_second[r.place], p_limit_hour[r.place], p_limit_day[r.place]) t;
    p_use[r.place] := v_use;
    v_over := r.wanted - v_granted;
    CONTINUE WHEN v_over = 0;
    v_returned := array_fill(0::bigint, ARRAY[cardinality(p_api_key_id)]);
    FOR v_n IN REVERSE cardinality(p_key)..1 LOOP
      EXIT WHEN v_over = 0;
      IF v_place[p_key[v_n]] = r.place AND p_outcome[v_n] IS NULL THEN
        p_outcome[v_n] := 'limited';
        v_returned[p_key[v_n]] := v_returned[p_key[v_n]] + 1;
        v_over := v_over - 1;
      END IF;
    END LOOP;
    FOR v_key IN 1..cardinality(p_api_key_id) LOOP
      CONTINUE WHEN v_returned[v_key] = 0;
      p_use[v_key] := return_tokens(p_api_key_id[v_key], c_bucket, v_returned[v_key], p_use[v_key]);
    END LOOP;
  END LOOP;
END $function$;
COMMENT ON FUNCTION take_project_tokens(p_key integer[], p_api_key_id text[], p_project_id text[], p_limit_second bigint[], p_limit_hour bigint[], p_limit_day bigint[], INOUT p_outcome submission_outcome[], INOUT p_use window_use[]) IS 'Fourth step of append_submissions: counts the rows without an outcome in the windows of their projects, of those that have an element in the arrays. The rows of a project beyond its ceiling become limited, the last first, and are not counted in the windows of their API keys. p_use has the windows of each project as well then.
Locks: those of take_tokens, in ascending order of project id.';

CREATE OR REPLACE FUNCTION take_read_tokens(p_api_key_id text, p_project_id text, p_wanted bigint, p_limit bigint, p_project_limit bigint, OUT granted bigint, OUT use window_use, OUT left_ms bigint, OUT project_second bigint)
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
DECLARE
  c_bucket CONSTANT smallint := 1; -- BUCKET_READS
  v_granted bigint;
BEGIN
  SELECT t.granted, t.left_ms, t.second, t.n_second, t.n_hour, t.n_day
    INTO granted, left_ms, use.second, use.n_second, use.n_hour, use.n_day
    FROM take_tokens(p_api_key_id, c_bucket, p_wanted, p_limit, NULL, NULL) t;
  IF p_project_limit IS NULL THEN RETURN; END IF;
  SELECT t.granted, t.n_second INTO v_granted, project_second
    FROM take_tokens(p_project_id, c_bucket, granted, p_project_limit, NULL, NULL) t;
  IF v_granted < granted THEN
    use := return_tokens(p_api_key_id, c_bucket, granted - v_granted, use);
    granted := v_granted;
  END IF;
END $function$;
COMMENT ON FUNCTION take_read_tokens(p_api_key_id text, p_project_id text, p_wanted bigint, p_limit bigint, p_project_limit bigint, OUT granted bigint, OUT use window_use, OUT left_ms bigint, OUT project_second bigint) IS 'Counts up to p_wanted reads of an API key in its window and in that of its project, as many as both have room for. A null p_project_limit does not bind. Returns how many (granted), the use of the key''s windows after it, the rest of its second (left_ms), and the reads of the project in this second (project_second), null without a limit.
Locks: those of take_tokens, of the key and then of the project.';

CREATE OR REPLACE FUNCTION take_tokens(p_api_key_id text, p_bucket smallint, p_wanted bigint, p_limit_second bigint, p_limit_hour bigint, p_limit_day bigint, OUT granted bigint, OUT second bigint, OUT n_second bigint, OUT n_hour bigint, OUT n_day bigint, OUT left_ms bigint)
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
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
END $function$;
COMMENT ON FUNCTION take_tokens(p_api_key_id text, p_bucket smallint, p_wanted bigint, p_limit_second bigint, p_limit_hour bigint, p_limit_day bigint, OUT granted bigint, OUT second bigint, OUT n_second bigint, OUT n_hour bigint, OUT n_day bigint, OUT left_ms bigint) IS 'Counts up to p_wanted calls of an API key in a bucket, as many as all three windows have room for. Returns how many (granted), the use of the windows after it, and the rest of the current second (left_ms). A null limit does not bind. Windows never step back with the clock.
Locks: the advisory lock of key and bucket until the transaction ends, so that counts are exact over all processes.';

CREATE OR REPLACE FUNCTION time_stretches(p_log_id integer, p_after timestamp with time zone, p_before timestamp with time zone, p_end bigint)
 RETURNS TABLE(first_index bigint, end_index bigint)
 LANGUAGE sql
 STABLE ROWS 2
AS $function$
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
$function$;
COMMENT ON FUNCTION time_stretches(p_log_id integer, p_after timestamp with time zone, p_before timestamp with time zone, p_end bigint) IS 'Returns the stretches of a log below p_end outside which nothing was submitted after p_after and before p_before (null: any). Leaves without time bounds yet are always in one.
Locks: none.';

CREATE OR REPLACE FUNCTION witness_need(p policy)
 RETURNS TABLE(need integer, threshold integer, witness text)
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT -row_number() OVER ()::integer, 1, w ->> 'name' FROM jsonb_array_elements(p.witnesses) w
  WHERE (w ->> 'required')::boolean AND (w ->> 'kind')::integer <> 1
  UNION ALL
  SELECT q.ordinality::integer, (q.value ->> 'threshold')::integer, m
  FROM jsonb_array_elements(p.quorums) WITH ORDINALITY q, jsonb_array_elements_text(q.value -> 'members') m
$function$;
COMMENT ON FUNCTION witness_need(p policy) IS 'Returns what a policy needs of witnesses, except the log itself (kind 1): of those with the same number `need`, at least `threshold`. A required witness is a need of its own with a negative number, a quorum one with its place from 1.
Locks: none.';
