-- Start of signing: of an environment's keys the one with the latest `active_from` in the past signs. NULL while the key
-- is only published. Processes of earlier versions sign with a key as soon as they store it.
ALTER TABLE dsse_key ADD COLUMN active_from timestamptz;
UPDATE dsse_key SET active_from = valid_from;
ALTER TABLE dsse_key ALTER COLUMN active_from SET DEFAULT clock_timestamp();

-- When a replaced log was complete: all its submissions were witnessed, or it was frozen.
ALTER TABLE log ADD COLUMN ended_at timestamptz;
UPDATE log l SET ended_at = n.created_at
FROM log n WHERE n.environment = l.environment AND n.epoch = l.epoch + 1;

-- The key of the log's COSE receipts, SPKI in DER; null until a process that holds the log's key has published it.
ALTER TABLE log ADD COLUMN receipt_spki bytea;
