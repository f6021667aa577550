-- Running workers; each updates `seen_at` every few seconds.
CREATE TABLE worker (
  id text COLLATE "C" PRIMARY KEY,
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
