-- People who sign in to the dashboard at an identity provider: their roles, and what belongs to them.
--
-- Processes of the version before do not find the sessions of people, whose secrets are hashed under another use, so that
-- nobody has the operator's rights in them; they list them as the operator's. Keys and rules that they make belong to nobody.

-- Better to fail and be run again than to keep every process waiting behind a long read.
SET LOCAL lock_timeout = '5s';

-- Who has signed in, as the provider named him last. `email` is empty if it named none.
CREATE TABLE person (
  id text COLLATE "C" PRIMARY KEY,
  issuer text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  name text NOT NULL,
  email text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  signed_in_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (issuer, subject)
);

-- Which role people get by the claims of their tokens when they sign in. `project_id` is null for operators, here and
-- below; `conditions`: patterns by the names of claims.
CREATE TABLE role_rule (
  id text COLLATE "C" PRIMARY KEY,
  project_id text COLLATE "C" REFERENCES project,
  role smallint NOT NULL,
  conditions jsonb NOT NULL,
  created_by text COLLATE "C" REFERENCES person,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX role_rule_by_project ON role_rule (project_id, id);

-- The roles of people: by an invitation, or by a rule, with which they go.
CREATE TABLE membership (
  person_id text COLLATE "C" NOT NULL REFERENCES person,
  project_id text COLLATE "C" REFERENCES project,
  rule_id text COLLATE "C" REFERENCES role_rule ON DELETE CASCADE,
  role smallint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE NULLS NOT DISTINCT (person_id, project_id, rule_id)
);
CREATE INDEX membership_by_project ON membership (project_id, person_id);
CREATE INDEX membership_by_rule ON membership (rule_id);

-- Invitations that nobody has accepted. `email` is null if whoever has the link may.
CREATE TABLE invitation (
  id text COLLATE "C" PRIMARY KEY,
  hash bytea NOT NULL UNIQUE,
  project_id text COLLATE "C" REFERENCES project,
  role smallint NOT NULL,
  email text,
  created_by text COLLATE "C" REFERENCES person,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX invitation_by_project ON invitation (project_id, id);

-- Logout tokens that the provider has sent, by the SHA-256 of their `jti`, until they expire.
CREATE TABLE logout_token (
  hash bytea PRIMARY KEY,
  expires_at timestamptz NOT NULL
);

-- `provider_session`: the `sid` of the ID token. `operator_rule`: the condition of OIDC_OPERATORS that made him an operator,
-- who is one for as long as the setting has it.
ALTER TABLE session ADD COLUMN person_id text COLLATE "C" REFERENCES person;
ALTER TABLE session ADD COLUMN provider_session text;
ALTER TABLE session ADD COLUMN operator_rule text;
CREATE INDEX session_by_person ON session (person_id);

ALTER TABLE api_key ADD COLUMN created_by text COLLATE "C" REFERENCES person;
CREATE INDEX api_key_by_creator ON api_key (created_by) WHERE created_by IS NOT NULL;
ALTER TABLE trust_rule ADD COLUMN created_by text COLLATE "C" REFERENCES person;
CREATE INDEX trust_rule_by_creator ON trust_rule (created_by) WHERE created_by IS NOT NULL;

-- Who was signed in as whoever did it, as he was named then.
ALTER TABLE audit_entry ADD COLUMN IF NOT EXISTS actor_person jsonb;
