-- Which link a session was started by; null if by the admin token, and in sessions from before.
ALTER TABLE session ADD COLUMN link_id text COLLATE "C";
