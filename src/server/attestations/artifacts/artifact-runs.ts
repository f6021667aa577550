import { byteaArray, type Pool, type Sql } from '../../database/connect.js';
import { LogLock } from '../../log/store/logs.js';
import { ENTRY_BYTES, lastEntry, mergeEntries, type RunSlice } from './merge-entries.js';

/** Leaves of the smallest run. */
const BLOCK = 1_024;
/** Runs that are merged into one. */
const FANOUT = 16;
/** Runs of level 1 are made of leaves directly if there are so many. */
const DIRECT_LEVEL = 1;
/**
 * The level of the largest runs, 67 million leaves each. A merge ends with the deletion of the rows of what it merged:
 * 560,000 at this level.
 */
const MAX_LEVEL = 4;
/** Entries per row. With 128 the row would be too large to stay in the table. */
const CHUNK = 120;
/** Rows per run that a step of a merge reads: 38,400 entries in all, which take Node about 20 ms. */
const SLICE = 20;

const leavesOf = (level: number) => BLOCK * FANOUT ** level;

/** How far the artifacts of a log are indexed. */
type ArtifactIndexState = { logId: number; indexed: number; size: number };

/** Reads how far each log is indexed. Costs a few index look-ups per log. */
export async function readArtifactIndex(sql: Sql): Promise<ArtifactIndexState[]> {
  return sql<ArtifactIndexState[]>`
    SELECT l.id AS "logId",
      coalesce((SELECT max(r.end_index) FROM artifact_run r WHERE r.log_id = l.id AND r.is_current), 0) AS indexed,
      coalesce((SELECT max(s.log_index) + 1 FROM submission s WHERE s.log_id = l.id), 0) AS size
    FROM log l ORDER BY l.id`;
}

/**
 * Indexes the next leaves of a log, 1,024 or 16,384. Does nothing if there are fewer, or while another process indexes
 * this log. One transaction: the leaves are indexed and covered by the run, or neither.
 *
 * @returns whether a run was added
 */
export async function addArtifactRun(pool: Pool, logId: number): Promise<boolean> {
  return pool.begin(async (tx) => {
    if (!(await lockIndex(tx, logId))) return false;
    const state = (await readArtifactIndex(tx)).find((candidate) => candidate.logId === logId);
    if (state === undefined || state.size - state.indexed < BLOCK) return false;
    const { indexed: first, size } = state;
    const isDirect = first % leavesOf(DIRECT_LEVEL) === 0 && size - first >= leavesOf(DIRECT_LEVEL);
    const level = isDirect ? DIRECT_LEVEL : 0;
    const run = { logId, level, firstIndex: first, endIndex: first + leavesOf(level), isCurrent: true };
    await indexLeaves(tx, await insertRun(tx, run), run);
    return true;
  });
}

type Run = { logId: number; level: number; firstIndex: number; endIndex: number; isCurrent: boolean };

async function insertRun(tx: Sql, run: Run): Promise<number> {
  const [row] = await tx<{ id: number }[]>`
    INSERT INTO artifact_run (log_id, level, first_index, end_index, is_current)
    VALUES (${run.logId}, ${run.level}, ${run.firstIndex}, ${run.endIndex}, ${run.isCurrent}) RETURNING id`;
  if (row === undefined) throw new Error('no run was inserted');
  return row.id;
}

/**
 * Writes the entries of the leaves, and of the subjects of their public statements, each entry once. Throws if any leaf is
 * missing: a log has no gaps.
 */
async function indexLeaves(tx: Sql, runId: number, { logId, firstIndex, endIndex }: Run): Promise<void> {
  const [stored] = await tx<{ leaves: number; bytes: number; entries: number }[]>`
    WITH leaf AS MATERIALIZED (
      SELECT project_id, log_index, artifact_sha256 FROM named_submission
      WHERE log_id = ${logId} AND log_index >= ${firstIndex} AND log_index < ${endIndex}
    ), entry AS MATERIALIZED (
      SELECT artifact_entry(artifact_sha256, project_id, log_index) AS entry FROM leaf
      UNION
      SELECT artifact_entry(subject, l.project_id, l.log_index) FROM leaf l
      JOIN submission_statement t ON t.log_index = l.log_index
      CROSS JOIN unnest(t.subjects) subject
      WHERE t.log_id = ${logId} AND t.log_index >= ${firstIndex} AND t.log_index < ${endIndex}
      ORDER BY 1
    ), chunk AS (
      INSERT INTO artifact_chunk (run_id, first_entry, entries)
      SELECT ${runId}, substr(entries, 1, ${ENTRY_BYTES}::integer), entries FROM (
        SELECT string_agg(entry, '') AS entries FROM (
          SELECT entry, (row_number() OVER () - 1) / ${CHUNK}::integer AS chunk FROM entry) numbered
        GROUP BY chunk) gathered
      RETURNING octet_length(entries) AS bytes
    )
    SELECT (SELECT count(*) FROM leaf) AS leaves, (SELECT count(*) FROM entry) AS entries,
           (SELECT sum(bytes)::bigint FROM chunk) AS bytes`;
  const isWhole = stored?.leaves === endIndex - firstIndex && stored.bytes === stored.entries * ENTRY_BYTES;
  if (!isWhole) throw new Error(`log ${logId} lacks leaves in [${firstIndex}, ${endIndex})`);
}

/**
 * Merges the next part of sixteen runs of a log, if there are so many of a level. With the last part, which is one transaction with it, the merged run
 * takes their place. Does nothing while another process indexes this log.
 *
 * @returns whether there was something to merge
 */
export async function mergeArtifactRuns(pool: Pool, logId: number): Promise<boolean> {
  return pool.begin(async (tx) => {
    if (!(await lockIndex(tx, logId))) return false;
    const merge = (await findMerge(tx, logId)) ?? (await beginMerge(tx, logId));
    if (merge === undefined) return false;
    const slices = await readSlices(tx, merge);
    const merged = mergeEntries(slices, merge.mergedThrough);
    await insertChunks(tx, merge.id, merged);
    if (slices.some(({ hasMore }) => hasMore)) {
      await tx`UPDATE artifact_run SET merged_through = ${lastEntry(merged)} WHERE id = ${merge.id}`;
    } else await endMerge(tx, merge);
    return true;
  });
}

async function lockIndex(tx: Sql, logId: number): Promise<boolean> {
  const [lock] = await tx<{ held: boolean }[]>`
    SELECT pg_try_advisory_xact_lock(${LogLock.ARTIFACTS}, ${logId}) AS held`;
  return lock?.held === true;
}

type Merge = { id: number; mergedThrough: Uint8Array; inputs: number[] };

async function findMerge(tx: Sql, logId: number): Promise<Merge | undefined> {
  const [merge] = await tx<Merge[]>`
    SELECT m.id, m.merged_through AS "mergedThrough",
      ARRAY(SELECT r.id FROM artifact_run r WHERE r.log_id = m.log_id AND r.is_current
            AND r.end_index > m.first_index AND r.end_index <= m.end_index ORDER BY r.end_index) AS inputs
    FROM artifact_run m WHERE m.log_id = ${logId} AND NOT m.is_current`;
  return merge;
}

/** Begins to merge the smallest runs of which there are enough. */
async function beginMerge(tx: Sql, logId: number): Promise<Merge | undefined> {
  const [group] = await tx<{ level: number; firstIndex: number; endIndex: number }[]>`
    SELECT r.level, min(r.first_index) AS "firstIndex", max(r.end_index) AS "endIndex" FROM artifact_run r
    WHERE r.log_id = ${logId} AND r.is_current AND r.level < ${MAX_LEVEL}::integer
    GROUP BY r.level, div(r.first_index, ${BLOCK}::integer * ${FANOUT}::numeric ^ (r.level + 1))
    HAVING count(*) = ${FANOUT}::integer ORDER BY r.level LIMIT 1`;
  if (group === undefined) return undefined;
  await insertRun(tx, { ...group, level: group.level + 1, logId, isCurrent: false });
  return findMerge(tx, logId);
}

/** The next rows of each run, from the one on that holds the first entry after what is merged. */
async function readSlices(tx: Sql, { inputs, mergedThrough }: Merge): Promise<RunSlice[]> {
  return tx<RunSlice[]>`
    SELECT coalesce(s.entries, '') AS entries, s.rows = ${SLICE}::integer AS "hasMore"
    FROM unnest(${inputs}::bigint[]) AS r(id)
    CROSS JOIN LATERAL (
      SELECT coalesce((SELECT c.first_entry FROM artifact_chunk c
                       WHERE c.run_id = r.id AND c.first_entry <= ${mergedThrough}
                       ORDER BY c.first_entry DESC LIMIT 1), '') AS first_entry) f
    CROSS JOIN LATERAL (
      SELECT string_agg(c.entries, '' ORDER BY c.first_entry) AS entries, count(*) AS rows FROM (
        SELECT * FROM artifact_chunk c WHERE c.run_id = r.id AND c.first_entry >= f.first_entry
        ORDER BY c.first_entry LIMIT ${SLICE}::integer) c) s`;
}

async function insertChunks(tx: Sql, runId: number, entries: Buffer): Promise<void> {
  const chunks: Buffer[] = [];
  const bytes = CHUNK * ENTRY_BYTES;
  for (let at = 0; at < entries.length; at += bytes) chunks.push(entries.subarray(at, at + bytes));
  await tx`
    INSERT INTO artifact_chunk (run_id, first_entry, entries)
    SELECT ${runId}, substr(c, 1, ${ENTRY_BYTES}::integer), c FROM unnest(${byteaArray(tx, chunks)}) c`;
}

async function endMerge(tx: Sql, { id, inputs }: Merge): Promise<void> {
  await tx`DELETE FROM artifact_chunk WHERE run_id = ANY(${inputs})`;
  await tx`DELETE FROM artifact_run WHERE id = ANY(${inputs})`;
  await tx`UPDATE artifact_run SET is_current = true, merged_through = '' WHERE id = ${id}`;
}
