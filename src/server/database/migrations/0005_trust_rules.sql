-- Workloads without a stored API key exchange a token of their identity provider for one.
--
-- Processes of the version before do not know exchanged keys and answer them as unknown; their audit entries have no
-- identity.

-- Better to fail and be run again than to keep every process waiting behind a long read of the audit log.
SET LOCAL lock_timeout = '5s';

-- Whose tokens are exchanged for API keys of a project. `audience`: empty for the service's own address. `conditions`:
-- patterns by the names of claims. The rule's id stands for all its keys in rate windows and idempotency keys. A removed
-- rule remains, so that its usage is still the project's.
CREATE TABLE trust_rule (
  id text COLLATE "C" PRIMARY KEY,
  project_id text COLLATE "C" NOT NULL REFERENCES project,
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
  created_at timestamptz NOT NULL DEFAULT now(),
  removed_at timestamptz
);
CREATE INDEX trust_rule_by_project ON trust_rule (project_id, id);
CREATE INDEX trust_rule_by_issuer ON trust_rule (issuer, id) WHERE removed_at IS NULL;

-- API keys that were exchanged for tokens, until they expire. `identity` is in every statement made with the key.
CREATE TABLE exchanged_key (
  id text COLLATE "C" PRIMARY KEY,
  trust_rule_id text COLLATE "C" NOT NULL REFERENCES trust_rule,
  prefix text NOT NULL,
  last4 text NOT NULL,
  hmac bytea NOT NULL UNIQUE,
  identity jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX exchanged_key_by_expiry ON exchanged_key (expires_at);

-- Tokens with a `jti` that were exchanged by a rule which allows that once, until they expire. `hash` is the SHA-256 of
-- issuer and `jti`.
CREATE TABLE exchanged_token (
  hash bytea PRIMARY KEY,
  key_id text COLLATE "C" NOT NULL,
  exchanged_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX exchanged_token_by_expiry ON exchanged_token (expires_at);

-- Who held the API key that did it, if it was exchanged for a token.
ALTER TABLE audit_entry ADD COLUMN IF NOT EXISTS actor_identity jsonb;
