-- With 250 keys in a call a row takes Postgres 46 µs so, and 60 with a loop over the locks and records written ON CONFLICT,
-- which looks each key up once more and takes a lock for its row. Who holds a key's advisory lock, and has found no record,
-- knows that there is none.
CREATE OR REPLACE FUNCTION claim_idempotency_keys(
  p_api_key_id text[], p_key text[], p_request_hash bytea[], p_retention_ms bigint,
  INOUT p_outcome submission_outcome[], INOUT p_resource_id text[])
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  r record;
BEGIN
  FOR r IN
    SELECT u.n FROM unnest(p_api_key_id, p_key, p_outcome) WITH ORDINALITY u(api_key_id, key, outcome, n)
    WHERE u.key IS NOT NULL AND u.outcome IS NULL
      AND NOT pg_try_advisory_xact_lock(hashtextextended(u.api_key_id || ' ' || u.key, 0))
  LOOP
    p_outcome[r.n] := 'busy';
  END LOOP;
  FOR r IN
    SELECT u.n, k.resource_id, k.request_hash = u.request_hash AS is_same,
           k.created_at > clock_timestamp() - p_retention_ms * interval '1 millisecond' AS is_valid
    FROM unnest(p_api_key_id, p_key, p_request_hash, p_outcome)
      WITH ORDINALITY u(api_key_id, key, request_hash, outcome, n)
    CROSS JOIN LATERAL (
      SELECT k.resource_id, k.request_hash, k.created_at FROM idempotency_key k
      WHERE k.api_key_id = u.api_key_id AND k.key = u.key LIMIT 1
    ) k
    WHERE u.outcome IS NULL
  LOOP
    IF r.is_valid THEN
      p_outcome[r.n] := CASE WHEN r.is_same THEN 'replayed' ELSE 'key_reused' END;
      p_resource_id[r.n] := CASE WHEN r.is_same THEN r.resource_id END;
    ELSE
      DELETE FROM idempotency_key k WHERE k.api_key_id = p_api_key_id[r.n] AND k.key = p_key[r.n];
    END IF;
  END LOOP;
END $$;
COMMENT ON FUNCTION claim_idempotency_keys IS
'Second step of append_submissions: claims the idempotency keys of the rows without an outcome. A row whose key another transaction holds becomes busy. A row whose key was used within p_retention_ms becomes replayed, with the resource_id of the earlier request, or key_reused if the requests differ. Deletes expired records of the other keys, which have none then. A null key claims nothing.
Locks: the advisory lock of each key (64 bits, a hash of API key id and key), never waited for; expired records.';

CREATE OR REPLACE FUNCTION record_idempotency_keys(
  p_api_key_id text[], p_key text[], p_request_hash bytea[], p_resource_id text[],
  p_outcome submission_outcome[])
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  INSERT INTO idempotency_key (api_key_id, key, request_hash, resource_id, created_at)
  SELECT u.api_key_id, u.key, u.request_hash, u.resource_id, clock_timestamp()
  FROM unnest(p_api_key_id, p_key, p_request_hash, p_resource_id, p_outcome)
    AS u(api_key_id, key, request_hash, resource_id, outcome)
  WHERE u.key IS NOT NULL AND u.outcome IS NULL;
END $$;
COMMENT ON FUNCTION record_idempotency_keys IS
'Last step of append_submissions: records the idempotency keys of the rows without an outcome. The caller holds their advisory locks, and they have no record (claim_idempotency_keys).
Locks: the rows that it writes.';
