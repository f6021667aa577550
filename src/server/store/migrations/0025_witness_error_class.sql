-- Tenants see the class of a witness's error, operators its text, which may name hosts of theirs.
ALTER TABLE witness_state ADD COLUMN last_error_class text;
ALTER TABLE witness_request ADD COLUMN last_error_class text;
