-- Time stamps over the DSSE signatures of submissions, for the Sigstore part of their bundles.

-- A verified TimeStampResp (DER) of an authority over the signature of a leaf. Stored when a bundle is first read or
-- exported, and never changed: of two processes that ask at once, the first to commit decides what all serve. Every
-- authority has been in timestamp_authority at the time of its stamp.
CREATE TABLE signature_stamp (
  log_id integer NOT NULL,
  log_index bigint NOT NULL,
  witness text COLLATE "C" NOT NULL,
  response bytea NOT NULL,
  PRIMARY KEY (log_id, log_index, witness)
);
