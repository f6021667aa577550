-- Fingerprints of the keys in SECRET_KEY that this database was used with, by key id. A fingerprint is derived from its
-- key and reveals nothing about it. A process whose keys have other fingerprints does not start.
CREATE TABLE secret_key (
  id text PRIMARY KEY,
  fingerprint bytea NOT NULL,
  first_used_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
