-- The key that replaced this one in a rotation.
ALTER TABLE api_key ADD COLUMN successor_id text COLLATE "C";

-- Calls of a key in a bucket by hour and UTC day (`window_seconds` 3600 or 86400); `started` in seconds since the
-- epoch. A worker copies them from `rate_counter`, which keeps the last minutes and each key's newest row. If both
-- tables have a count for a window, the larger one is right.
CREATE TABLE usage_counter (
  api_key_id text COLLATE "C" NOT NULL,
  window_seconds integer NOT NULL,
  started bigint NOT NULL,
  bucket smallint NOT NULL,
  n bigint NOT NULL,
  PRIMARY KEY (api_key_id, window_seconds, started, bucket)
);
CREATE INDEX usage_counter_by_age ON usage_counter (window_seconds, started);
