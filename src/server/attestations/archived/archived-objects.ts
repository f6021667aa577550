/** The objects of archives that have what was removed from the tables: an entry for each, not for each submission. */
import { createHash } from 'node:crypto';
import type { Sql } from '../../database/connect.js';

/** An object of a batch: its name below the place of the archive, and its SHA-256. */
export type ArchivedObject = { place: string; sha256: Uint8Array };

/** The ids of a batch's submissions and of their projects, in order. */
export type OwnedIds = readonly { readonly id: string; readonly projectId: string }[];

/** Bytes by which an entry knows each submission and its owner: one of 2^32 others is taken for it. */
const OWNER_BYTES = 4;
/** Entries whose ids begin before an id: ids are ordered by time, and few batches of a log overlap. */
const MOST = 64;

function ownerBytes(id: string, projectId: string): Buffer {
  return createHash('sha256').update(`${id}\n${projectId}`).digest().subarray(0, OWNER_BYTES);
}

/** Records the object of the batch that ends at a size, in place of one of a run that ended before it removed the batch. */
export async function insertArchivedObject(
  tx: Sql,
  batch: { logId: number; treeSize: number },
  ids: OwnedIds,
  { place, sha256 }: ArchivedObject,
): Promise<void> {
  const sorted = ids.map(({ id }) => id).sort();
  const owners = Buffer.concat(ids.map(({ id, projectId }) => ownerBytes(id, projectId)));
  await tx`
    INSERT INTO archived_object (log_id, tree_size, first_id, last_id, place, sha256, owners)
    VALUES (${batch.logId}, ${batch.treeSize}, ${sorted[0] ?? ''}, ${sorted.at(-1) ?? ''}, ${place}, ${sha256}, ${owners})
    ON CONFLICT (log_id, tree_size) DO UPDATE SET place = excluded.place, sha256 = excluded.sha256`;
}

/** Records that an object was written anew: rows of its batch that are not removed have changed. */
export async function renewArchivedObject(
  sql: Sql,
  { logId, treeSize }: { logId: number; treeSize: number },
  sha256: Uint8Array,
): Promise<void> {
  await sql`UPDATE archived_object SET sha256 = ${sha256} WHERE log_id = ${logId} AND tree_size = ${treeSize}`;
}

/** Finds the object that has a removed submission of a project, in one of these logs. Undefined if there is none. */
export async function findArchivedObject(
  sql: Sql,
  { id, projectId }: { id: string; projectId: string },
  logIds: readonly number[],
): Promise<ArchivedObject | undefined> {
  const rows = await sql<(ArchivedObject & { owners: Uint8Array })[]>`
    SELECT o.place, o.sha256, o.owners FROM unnest(${[...logIds]}::integer[]) l(id)
    CROSS JOIN LATERAL (
      SELECT * FROM archived_object o WHERE o.log_id = l.id AND o.first_id <= ${id}
      ORDER BY o.first_id DESC LIMIT ${MOST}::integer) o
    WHERE o.last_id >= ${id}`;
  const owner = ownerBytes(id, projectId);
  return rows.find(({ owners }) => {
    const bytes = Buffer.from(owners);
    for (let at = bytes.indexOf(owner); at !== -1; at = bytes.indexOf(owner, at + 1))
      if (at % OWNER_BYTES === 0) return true;
    return false;
  });
}
