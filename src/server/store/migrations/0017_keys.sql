-- From when a key signs: the one of its environment with the newest such time in the past does. Null while the key is
-- only published. Processes of earlier versions sign with a key as soon as they store it.
ALTER TABLE dsse_key ADD COLUMN active_from timestamptz;
UPDATE dsse_key SET active_from = valid_from;
ALTER TABLE dsse_key ALTER COLUMN active_from SET DEFAULT clock_timestamp();

-- When nothing more was to come of a log that another has replaced: all that it took was witnessed, or it was frozen.
ALTER TABLE log ADD COLUMN ended_at timestamptz;
UPDATE log l SET ended_at = n.created_at
FROM log n WHERE n.environment = l.environment AND n.epoch = l.epoch + 1;

-- The key of the log's COSE receipts, SPKI in DER; null until a process that holds the log's key has published it.
ALTER TABLE log ADD COLUMN receipt_spki bytea;
