-- The keys of SECRET_KEY that the processes over this database have worked with, by their ids. A fingerprint is derived
-- from its key and tells nothing of it; a process whose keys do not fit does not start.
CREATE TABLE secret_key (
  id text PRIMARY KEY,
  fingerprint bytea NOT NULL,
  first_used_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
