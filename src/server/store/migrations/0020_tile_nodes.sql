-- Of each tile the roots over every 16 of its hashes, from which a proof reads what it would otherwise hash. Workers fill
-- them in for tiles that were full before; until then proofs hash.
ALTER TABLE tile ADD COLUMN nodes bytea;
ALTER TABLE tile ALTER COLUMN nodes SET STORAGE EXTERNAL;

CREATE INDEX tile_without_nodes ON tile (log_id, level, tile_index)
  WHERE octet_length(hashes) = 8192 AND (nodes IS NULL OR octet_length(nodes) < 512);
