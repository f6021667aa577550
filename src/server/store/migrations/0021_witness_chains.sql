-- An authority may be trusted under several chains at once, so that the next one is published before it is used.
DROP INDEX timestamp_authority_active;
CREATE INDEX timestamp_authority_active ON timestamp_authority (name) WHERE valid_to IS NULL;
