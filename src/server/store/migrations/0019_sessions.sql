-- Links that sign in to the dashboard, once. `hash` is the HMAC of the link's secret.
CREATE TABLE sign_in_link (
  id text COLLATE "C" PRIMARY KEY,
  hash bytea NOT NULL UNIQUE,
  project_id text COLLATE "C" NOT NULL REFERENCES project,
  expires_at timestamptz NOT NULL
);
CREATE INDEX sign_in_link_by_project ON sign_in_link (project_id);

-- Sessions of the dashboard. `hash` is the HMAC of the cookie's value. `project_id` is null if it is the operator's.
CREATE TABLE session (
  id text COLLATE "C" PRIMARY KEY,
  hash bytea NOT NULL UNIQUE,
  project_id text COLLATE "C" REFERENCES project,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_used_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX session_by_project ON session (project_id);
