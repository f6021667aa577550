-- The raw ML-DSA-44 key with which the log signs its checkpoints as well. Never changed once set.
ALTER TABLE log ADD COLUMN ml_dsa_public_key bytea;
