-- Quorums of a policy, each of which must be met beside the required witnesses: [{"threshold", "members": [name]}].
ALTER TABLE policy ADD COLUMN quorums jsonb NOT NULL DEFAULT '[]';

-- The largest tree size for which a request is pending.
ALTER TABLE witness_state ADD COLUMN requested_tree_size bigint NOT NULL DEFAULT 0;

-- Requests that a witness has accepted and not yet fulfilled. `state` is what the client of its kind continues from.
-- `attempt` is the fencing token of the lease. An exclusive request is the only one of its witness, over all logs.
CREATE TABLE witness_request (
  log_id integer NOT NULL REFERENCES log,
  witness text COLLATE "C" NOT NULL,
  tree_size bigint NOT NULL,
  state bytea NOT NULL,
  detail jsonb NOT NULL,
  is_exclusive boolean NOT NULL,
  requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  attempt bigint NOT NULL DEFAULT 0,
  leased_until timestamptz,
  next_poll_at timestamptz NOT NULL,
  failures integer NOT NULL DEFAULT 0,
  last_error text,
  PRIMARY KEY (log_id, witness, tree_size)
);
CREATE UNIQUE INDEX witness_request_exclusive ON witness_request (witness) WHERE is_exclusive;

-- Identities of witnesses that are not time-stamping authorities, and when they were trusted. `identity` has its kind (a
-- proto WitnessKind number); its other members depend on the kind.
CREATE TABLE trusted_witness (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  identity jsonb NOT NULL,
  valid_from timestamptz NOT NULL DEFAULT clock_timestamp(),
  valid_to timestamptz
);

CREATE FUNCTION witness_need(p policy) RETURNS TABLE (need integer, threshold integer, witness text)
LANGUAGE sql IMMUTABLE AS $$
  SELECT -row_number() OVER ()::integer, 1, w ->> 'name' FROM jsonb_array_elements(p.witnesses) w
  WHERE (w ->> 'required')::boolean AND (w ->> 'kind')::integer <> 1
  UNION ALL
  SELECT q.ordinality::integer, (q.value ->> 'threshold')::integer, m
  FROM jsonb_array_elements(p.quorums) WITH ORDINALITY q, jsonb_array_elements_text(q.value -> 'members') m
$$;
COMMENT ON FUNCTION witness_need IS
'Returns what a policy needs of witnesses, except the log itself (kind 1): of those with the same number `need`, at least `threshold`. A required witness is a need of its own with a negative number, a quorum one with its place from 1.
Locks: none.';
