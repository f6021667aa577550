-- The bound of the partition that the table of submissions becomes in 0013_partitions.sql, checked while others write: then
-- no row is read under the lock that makes it one.

-- Better to fail and be run again than to keep every process waiting behind a long read of the table.
SET LOCAL lock_timeout = '5s';

-- Logs that are created until then are in it as well, so there is room for some.
DO $$ BEGIN
  ALTER TABLE submission DROP CONSTRAINT IF EXISTS submission_former_bound;
  EXECUTE format('ALTER TABLE submission ADD CONSTRAINT submission_former_bound CHECK (log_id < %s) NOT VALID',
                 (SELECT coalesce(max(id), 0) + 100 FROM log));
END $$;

-- Outside the transaction:

ALTER TABLE submission VALIDATE CONSTRAINT submission_former_bound;
