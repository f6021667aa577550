-- The deliveries of one submission's events. Submission ids increase with time, as deliveries are made: inserts go to the
-- rightmost page of each subscription.
CREATE INDEX webhook_delivery_by_submission ON webhook_delivery (webhook_id, submission_id, id)
  WHERE submission_id IS NOT NULL;

-- Where an attempt was sent; null for attempts before this migration.
ALTER TABLE webhook_attempt ADD COLUMN url text;

-- Unsuccessful attempts to sign in to the dashboard, by the address or network that a client counts for, in a window.
-- A crash loses nothing but the counts.
CREATE UNLOGGED TABLE sign_in_attempt (
  peer text COLLATE "C" PRIMARY KEY,
  count integer NOT NULL,
  until timestamptz NOT NULL
);
