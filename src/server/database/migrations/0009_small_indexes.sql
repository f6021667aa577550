-- Smaller indexes of submissions, for lists and by id: 49 bytes a row where a project has all leaves, in place of 194.
--
-- Processes of the version before read the former indexes, which a worker drops a day after 0010 (former-indexes.ts).

-- The cost of a page does not depend on the size of the tables. An entry stands for the rows of 16 consecutive leaves,
-- which Postgres stores as one key with their places, so a page reads up to 16 rows more than it returns. A key is 16
-- bytes: projects, and schemas of a project, are hashed, and whoever reads an index compares the columns as well. Each
-- starts with an expression with which no other index starts, so that the planner cannot choose another index and sort.

-- Of an id the index has the ten characters of its time and five random ones: few others have the same.

-- Outside the transaction:

-- Concurrently, because all leaves of a log are read while others arrive. An attempt that failed leaves an invalid index.
DROP INDEX CONCURRENTLY IF EXISTS submission_of_project;
CREATE INDEX CONCURRENTLY submission_of_project ON submission (hashtext(project_id), log_id, (log_index >> 4));
DROP INDEX CONCURRENTLY IF EXISTS submission_of_schema;
CREATE INDEX CONCURRENTLY submission_of_schema
  ON submission (hashtext(project_id || E'\n' || schema), log_id, (log_index >> 4));
DROP INDEX CONCURRENTLY IF EXISTS submission_of_id;
CREATE INDEX CONCURRENTLY submission_of_id ON submission (substr(id, 5, 15));
-- The planner's statistics of all three.
ANALYZE submission;
