-- The workers that run, by ids of their own; each says every few seconds that it does.
CREATE TABLE worker (
  id text COLLATE "C" PRIMARY KEY,
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
