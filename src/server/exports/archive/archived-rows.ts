/** Rows of an archive: what a line of an export lacks to put a submission and its batch back. */
import { EXPORTED_LINE } from '../../attestations/submissions/exported-rows.js';
import { PROJECT_OF, SCHEMA_OF, WITH_NAMES } from '../../attestations/submissions/submission-names.js';
import type { Sql } from '../../database/connect.js';

/** A batch of a log to archive, or archived; `day` is the UTC day of its object, `yyyy-mm-dd`. */
export type ArchivableBatch = {
  batchId: string;
  firstIndex: number;
  treeSize: number;
  day: string;
  /** Whether it is published and has settled. */
  isSettled: boolean;
  isWitnessed: boolean;
};

/** SQL of a time in UTC with microseconds, as JSON has it. */
const timeOf = (column: string) => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
const hexOf = (column: string) => `encode(${column}, 'hex')`;

/** SQL of JSON without line breaks; members that are null are left out. */
const objectOf = (members: Record<string, string>) =>
  `json_strip_nulls(json_build_object(${Object.entries(members)
    .map(([name, value]) => `'${name}', ${value}`)
    .join(', ')}))`;

/** The row of a submission `s`, with its statement and stamps: all its columns, under names that stay. */
const ROW = objectOf({
  log_index: 's.log_index',
  id: 's.id',
  project: PROJECT_OF,
  submitted_at: timeOf('s.submitted_at'),
  artifact_sha256: hexOf('s.artifact_sha256'),
  schema: SCHEMA_OF,
  metadata: 's.metadata',
  metadata_state: 's.metadata_state',
  metadata_errors: 's.metadata_errors',
  attested_schema: 's.attested_schema',
  attested_metadata: 's.attested_metadata',
  salt: hexOf('s.salt'),
  commitment: hexOf('s.commitment'),
  statement_version: 's.statement_version',
  dsse_key: `(SELECT ${hexOf('k.spki')} FROM dsse_key k WHERE k.id = s.dsse_key_id)`,
  signature: hexOf('s.signature'),
  leaf_hash: hexOf('s.leaf_hash'),
  redacted_at: timeOf('s.redacted_at'),
  build: 's.build',
  statement: `(
    SELECT ${objectOf({
      digest: hexOf('t.digest'),
      text: 't.text',
      shown: 't.shown',
      subjects: `(SELECT CASE WHEN t.subjects IS NOT NULL THEN
                    coalesce(json_agg(${hexOf('u.subject')} ORDER BY u.n), '[]') END
                  FROM unnest(t.subjects) WITH ORDINALITY u(subject, n))`,
      erased_at: timeOf('t.erased_at'),
    })} FROM submission_statement t WHERE t.log_id = s.log_id AND t.log_index = s.log_index)`,
  stamps: `(
    SELECT json_agg(json_build_array(g.witness, ${hexOf('g.response')}) ORDER BY g.witness) FROM signature_stamp g
    WHERE g.log_id = s.log_id AND g.log_index = s.log_index)`,
});

/** The record of a batch `b`, with its evidence and its transitions. */
const BATCH = objectOf({
  id: 'b.id',
  first_index: 'b.first_index',
  tree_size: 'b.tree_size',
  root_hash: hexOf('b.root_hash'),
  note: 'b.note',
  policy_version: 'b.policy_version',
  sealed_at: timeOf('b.sealed_at'),
  deadline_at: timeOf('b.deadline_at'),
  registered_at: timeOf('b.registered_at'),
  status: 'b.status',
  witnessed_at: timeOf('b.witnessed_at'),
  evidence: `(
    SELECT json_agg(${objectOf({
      witness: 'e.witness',
      tree_size: 'e.tree_size',
      kind: 'e.kind',
      evidence: hexOf('e.evidence'),
      detail: 'e.detail',
      landed_at: timeOf('e.landed_at'),
    })} ORDER BY e.tree_size, e.witness) FROM evidence e
    WHERE e.log_id = b.log_id AND e.tree_size > b.first_index AND e.tree_size <= b.tree_size)`,
  transitions: `(
    SELECT json_agg(${objectOf({
      status: 'n.status',
      at: timeOf('n.at'),
      landed: 'n.landed',
      missing: 'n.missing',
    })} ORDER BY n.status) FROM batch_transition n
    WHERE n.log_id = b.log_id AND n.tree_size = b.tree_size)`,
});

/**
 * Lists the batches of a log in order. The day of one is that of its sealing, or of an earlier batch if the clock was set
 * back since: the days follow each other as the batches do.
 */
export async function listArchivableBatches(sql: Sql, logId: number): Promise<ArchivableBatch[]> {
  return sql<ArchivableBatch[]>`
    SELECT id AS "batchId", first_index AS "firstIndex", tree_size AS "treeSize",
           to_char(max(sealed_at) OVER (ORDER BY tree_size) AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day,
           registered_at IS NOT NULL AND status <> 1 AS "isSettled",
           registered_at IS NOT NULL AND status = 2 AS "isWitnessed"
    FROM batch WHERE log_id = ${logId} ORDER BY tree_size`;
}

/** Submissions of all projects: a page for `createRowReader`, and of each the project's id and the JSON of its row. */
type ArchivedPage = { page: Buffer; projects: string[]; rows: string[] };

/** Reads the submissions `[first, end)` of a log. Throws if any is missing. */
export async function listArchivedRows(
  sql: Sql,
  logId: number,
  first: number,
  end: number,
): Promise<ArchivedPage> {
  const [found] = await sql`
    SELECT string_agg(line, E'\\n' ORDER BY log_index) AS page,
           string_agg(project_id, E'\\n' ORDER BY log_index) AS projects,
           string_agg(archived, E'\\n' ORDER BY log_index) AS rows
    FROM (
      SELECT s.log_index, ${sql.unsafe(PROJECT_OF)} AS project_id, ${sql.unsafe(EXPORTED_LINE)} AS line, ${sql.unsafe(ROW)}::text AS archived
      FROM submission s ${sql.unsafe(WITH_NAMES)}
      WHERE s.log_id = ${logId} AND s.log_index >= ${first} AND s.log_index < ${end}
      ORDER BY s.log_index) AS page`.raw();
  const [page, ...texts] = (found ?? []) as (Buffer | null)[];
  const [projects = [], rows = []] = texts.map((text) => text?.toString().split('\n') ?? []);
  if (projects.length !== end - first || rows.length !== end - first)
    throw new Error(`log ${logId} has ${projects.length} submissions in [${first}, ${end})`);
  return { page: page ?? Buffer.alloc(0), projects, rows };
}

/** Reads the JSON of the record of the batch that ends at a size. Throws if there is none. */
export async function readBatchRecord(sql: Sql, logId: number, treeSize: number): Promise<string> {
  const [row] = await sql<{ record: string }[]>`
    SELECT ${sql.unsafe(BATCH)}::text AS record FROM batch b WHERE b.log_id = ${logId} AND b.tree_size = ${treeSize}`;
  if (row === undefined) throw new Error(`log ${logId} has no batch that ends at ${treeSize}`);
  return row.record;
}
