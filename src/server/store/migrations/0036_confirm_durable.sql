-- What is acknowledged because it was read must be as durable as what was written. A commit waits for the synchronous
-- standby only if its transaction has written WAL, and a transaction that finds what an earlier one stored writes none.

CREATE FUNCTION confirm_durable() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('transaction_read_only')::boolean THEN
    RAISE read_only_sql_transaction USING MESSAGE = 'a read-only server cannot confirm that what was read is durable';
  END IF;
  PERFORM pg_logical_emit_message(true, 'attest', '');
END $$;
COMMENT ON FUNCTION confirm_durable IS
'Makes the commit of this transaction wait as that of a write does. Its WAL record follows those of all rows that the transaction has read, so they are as durable as it when the commit returns. Raises read_only_sql_transaction on a server that takes no writes, such as a demoted primary.
Locks: none.';

CREATE OR REPLACE FUNCTION append_submissions(
  p_log_id integer, p_is_retry boolean, p_retention_ms bigint,
  p_api_key_id text[], p_project_id text[], p_limit_second bigint[], p_limit_hour bigint[], p_limit_day bigint[],
  p_key integer[], p_id text[], p_submitted_ms bigint[], p_schema text[], p_dsse_key_id integer[], p_bytes bytea[],
  p_metadata text, p_metadata_errors text[], p_idempotency_key text[], p_request_hash bytea[],
  OUT first_index bigint, OUT use json, OUT outcome json, OUT resource_id json, OUT log_index json
) LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  v_outcome submission_outcome[] := array_fill(NULL::submission_outcome, ARRAY[cardinality(p_id)]);
  v_log_index bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_id)]);
  v_resource_id text[] := p_id;
  v_metadata CONSTANT text[] := string_to_array(p_metadata, E'\n');
  v_use window_use[];
  v_holder text[];
  v_first integer;
BEGIN
  IF cardinality(v_metadata) <> cardinality(p_id) THEN
    RAISE EXCEPTION '% texts of metadata for % submissions', cardinality(v_metadata), cardinality(p_id);
  END IF;
  IF p_is_retry THEN
    SELECT * INTO v_outcome, v_log_index FROM find_stored_submissions(p_id, v_outcome, v_log_index);
  END IF;
  IF p_idempotency_key IS NOT NULL THEN
    SELECT array_agg(p_api_key_id[u.key] ORDER BY u.n) INTO v_holder FROM unnest(p_key) WITH ORDINALITY u(key, n);
    SELECT * INTO v_outcome, v_resource_id FROM claim_idempotency_keys(
      v_holder, p_idempotency_key, p_request_hash, p_retention_ms, v_outcome, v_resource_id);
  END IF;
  IF v_outcome && ARRAY['stored', 'replayed']::submission_outcome[] THEN
    PERFORM confirm_durable();
  END IF;
  SELECT * INTO v_outcome, v_use FROM take_key_tokens(
    p_key, p_api_key_id, p_limit_second, p_limit_hour, p_limit_day, v_outcome);
  v_first := array_position(v_outcome, NULL);
  IF v_first IS NOT NULL THEN
    v_log_index := allocate_log_indexes(p_log_id, v_outcome, v_log_index);
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, schema, dsse_key_id, metadata,
                            metadata_state, metadata_errors, artifact_sha256, salt, commitment, leaf_hash, signature)
    SELECT p_log_id, u.log_index, u.id, p_project_id[u.key],
           timestamptz 'epoch' + u.submitted_ms * interval '1 millisecond', u.schema, u.dsse_key_id, u.metadata,
           CASE WHEN u.metadata_errors IS NULL THEN 1 ELSE 2 END, -- METADATA_STATE_VALID, METADATA_STATE_INVALID
           u.metadata_errors, substring(u.bytes FROM 1 FOR 32), substring(u.bytes FROM 33 FOR 32),
           substring(u.bytes FROM 65 FOR 32), substring(u.bytes FROM 97 FOR 32), substring(u.bytes FROM 129)
    FROM unnest(v_outcome, v_log_index, p_key, p_id, p_submitted_ms, p_schema, p_dsse_key_id, p_bytes,
                v_metadata, p_metadata_errors)
      AS u(outcome, log_index, key, id, submitted_ms, schema, dsse_key_id, bytes, metadata, metadata_errors)
    WHERE u.outcome IS NULL;
    IF p_idempotency_key IS NOT NULL THEN
      PERFORM record_idempotency_keys(v_holder, p_idempotency_key, p_request_hash, p_id, v_outcome);
    END IF;
    first_index := v_log_index[v_first];
  END IF;
  use := to_json(v_use);
  IF cardinality(array_remove(v_outcome, NULL)) > 0 THEN
    outcome := to_json(v_outcome);
    resource_id := to_json(v_resource_id);
    log_index := to_json(v_log_index);
  END IF;
END $$;
COMMENT ON FUNCTION append_submissions IS
'Appends submissions to a log. p_api_key_id, p_project_id and p_limit_* have an element per API key, the other arrays one per submission; p_key is the place of its API key. p_bytes: artifact_sha256, salt, commitment and leaf_hash, 32 bytes each, then the signature. p_metadata: the JCS texts, one per line. p_metadata_errors, p_idempotency_key and p_request_hash are null if no submission has any; a submission with errors is invalid. An idempotency key occurs at most once in a call. Times are Unix milliseconds.
Each step decides the outcome of some submissions; those that no step has decided are stored, in order, from first_index on. outcome, resource_id and log_index are null if all are stored, else they have an element per submission, and a null outcome means stored. use has the windows of each API key, null if none of its submissions was counted.
p_is_retry: an earlier call with the same ids may have committed; its rows are returned as stored. The commit of a call that found rows or keys waits as that of one that stored some (confirm_durable). Raises ATFRZ if the log is frozen, and stores nothing if it raises.
Locks: of the idempotency keys (never waited for), then of the API keys'' rate windows in ascending order, then the log''s, last because it is contended most. In this order two calls cannot deadlock. All are held until the transaction ends.';
