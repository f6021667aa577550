import { BatchStatus } from '../../../../gen/attestation/v1/batches_pb.js';
import type { Sql } from '../../database/connect.js';
import { unixMsOf } from '../../database/times.js';

/** The batch of listed submissions. `status` is a proto BatchStatus number, `witnessedAtMs` Unix milliseconds. */
export type ListedBatch = {
  logId: number;
  id: string;
  status: number;
  witnessedAtMs: number | null;
  firstIndex: number;
  treeSize: number;
};

/** Batches that will not change any more, the witnessed ones, by the leaves that they hold. */
export type KnownBatches = {
  /** The newest known batch of a log. */
  newest(logId: number): ListedBatch | undefined;
  /** The known batch that holds a leaf. */
  find(logId: number, logIndex: number): ListedBatch | undefined;
  /** Adds a batch if it is witnessed. */
  add(batch: ListedBatch): void;
  /** Forgets the batches of a log. */
  forget(logId: number): void;
};

/** The number of SubmissionStatus and BatchStatus alike. */
export const WITNESSED = BatchStatus.WITNESSED;
/** Batches that are cached of a log, 200 bytes each: hours of one a second. A log that has more starts anew. */
const MAX_KNOWN = 20_000;

/** Knows none at first. */
export function createKnownBatches(): KnownBatches {
  const byLog = new Map<number, ListedBatch[]>();
  return {
    newest: (logId) => byLog.get(logId)?.at(-1),
    find(logId, logIndex) {
      const batches = byLog.get(logId) ?? [];
      const found = batches[placeOf(batches, logIndex)];
      return found !== undefined && found.firstIndex <= logIndex ? found : undefined;
    },
    add(batch) {
      if (batch.status !== WITNESSED) return;
      const standing = byLog.get(batch.logId) ?? [];
      const batches = standing.length < MAX_KNOWN ? standing : [];
      byLog.set(batch.logId, batches);
      const place = placeOf(batches, batch.firstIndex);
      if (batches[place]?.id !== batch.id) batches.splice(place, 0, batch);
    },
    forget: (logId) => void byLog.delete(logId),
  };
}

/** The place of the first batch that ends behind an index. */
function placeOf(batches: readonly ListedBatch[], logIndex: number): number {
  let [low, high] = [0, batches.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((batches[middle] as ListedBatch).treeSize > logIndex) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** A batch `b` as text; {@link parseBatch} reads it. */
export const BATCH_TEXT = `
  concat_ws(' ', b.log_id, b.id, b.status, b.first_index, b.tree_size,
            encode(timestamptz_send(b.witnessed_at), 'hex'))`;

/** Reads {@link BATCH_TEXT}. */
export function parseBatch(text: string): ListedBatch {
  const [logId, id = '', status, firstIndex, treeSize, witnessedAt] = text.split(' ');
  return {
    logId: Number(logId),
    id,
    status: Number(status),
    witnessedAtMs: witnessedAt === undefined ? null : unixMsOf(witnessedAt),
    firstIndex: Number(firstIndex),
    treeSize: Number(treeSize),
  };
}

/** Finds the published batches of leaves, in no order. */
export async function findBatchesOf(
  sql: Sql,
  leaves: readonly { logId: number; logIndex: number }[],
): Promise<ListedBatch[]> {
  const rows = await sql<{ text: string }[]>`
    SELECT DISTINCT ${sql.unsafe(BATCH_TEXT)} AS text
    FROM unnest(${leaves.map(({ logId }) => logId)}::integer[], ${leaves.map(({ logIndex }) => logIndex)}::bigint[])
      AS s(log_id, log_index)
    CROSS JOIN LATERAL (
      SELECT * FROM batch b WHERE b.log_id = s.log_id AND b.tree_size > s.log_index ORDER BY b.tree_size LIMIT 1) b
    WHERE b.registered_at IS NOT NULL`;
  return rows.map(({ text }) => parseBatch(text));
}
