-- The TUF repository at `{verify_url}/tuf/`.
--
-- Processes of the version before neither read nor write it.

-- Its files as they are served: metadata, which has a role and a version, and targets. A file never changes, except that
-- timestamp.json is replaced by one of a higher version.
CREATE TABLE tuf_file (
  name text COLLATE "C" PRIMARY KEY,
  role text COLLATE "C" CHECK (role IN ('root', 'targets', 'snapshot', 'timestamp')),
  version bigint CHECK (version > 0),
  content bytea NOT NULL CHECK (length(content) <= 500000),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CHECK ((role IS NULL) = (version IS NULL)),
  UNIQUE (role, version)
);
