-- Exported lines that lack time stamps over signatures.
--
-- Processes of the version before ship them without a note of it: their lines get stamps when the object is written again.

-- The log index of the first line that was shipped and lacks a stamp; null if every line has its stamps.
ALTER TABLE export_shipment ADD COLUMN unstamped_from bigint;
-- When the export's stamps are asked for again.
ALTER TABLE export ADD COLUMN stamp_at timestamptz NOT NULL DEFAULT '-infinity';

-- Outside the transaction:

DROP INDEX CONCURRENTLY IF EXISTS export_shipment_unstamped;
CREATE INDEX CONCURRENTLY export_shipment_unstamped ON export_shipment (export_id, log_id, tree_size)
  WHERE unstamped_from IS NOT NULL;
