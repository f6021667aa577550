/**
 * What this process has told its clients: per log the newest submission that it acknowledged. A database that lacks it is
 * not the one that it was stored in: an asynchronous replica was promoted, or a backup restored. Nothing that is durable
 * says so while the submission is not sealed yet.
 */

import { equalBytes } from '../../proof/bytes/primitives.js';
import type { Logger } from '../core/logger.js';
import type { Pool, Sql } from '../store/database/connect.js';
import { findLeafHash, readLogSize } from '../store/log/leaves.js';
import { freezeLog, type Log } from '../store/log/logs.js';

/** A leaf at its index. */
export type Leaf = { logIndex: number; leafHash: Uint8Array };

/** The newest acknowledged leaf of each log, in the memory of one process. */
export type AcknowledgedLeaves = {
  /** Told of leaves before their clients are. */
  record(logId: number, leaf: Leaf): void;
  newest(logId: number): Leaf | undefined;
};

/** Nothing is acknowledged yet. */
export function createAcknowledgedLeaves(): AcknowledgedLeaves {
  const leaves = new Map<number, Leaf>();
  return {
    record: (logId, leaf) => {
      if (leaf.logIndex > (leaves.get(logId)?.logIndex ?? -1)) leaves.set(logId, leaf);
    },
    newest: (logId) => leaves.get(logId),
  };
}

/**
 * Looks for the newest acknowledged leaf of a log, and freezes the log when the database does not have it at its index,
 * which the log lines say once.
 *
 * @returns what is missing, or undefined when nothing is
 */
export async function checkAcknowledged(
  { pool, acknowledged, log }: { pool: Pool; acknowledged: AcknowledgedLeaves; log: Logger },
  row: Log,
): Promise<string | undefined> {
  const leaf = acknowledged.newest(row.id);
  if (leaf === undefined || (await findLoss(pool, row.id, leaf)) === undefined) return undefined;
  let reason: string | undefined;
  const isFrozen = await freezeLog(pool, row.id, async (tx) => {
    reason = await findLoss(tx, row.id, leaf);
    return reason;
  });
  if (isFrozen) log.fatal({ origin: row.origin, reason }, 'the log is frozen');
  return reason;
}

/** What is missing when the leaf is not there; it is looked for at once, since all before it were committed before it. */
async function findLoss(sql: Sql, logId: number, { logIndex, leafHash }: Leaf): Promise<string | undefined> {
  const found = await findLeafHash(sql, logId, logIndex);
  if (found !== undefined && equalBytes(found, leafHash)) return undefined;
  const leaf = Buffer.from(leafHash).toString('hex');
  const acknowledged = `the submission at index ${logIndex} (leaf ${leaf}) was acknowledged`;
  if (found !== undefined) {
    return `${acknowledged}, and another one has its place in the database: acknowledged submissions are missing`;
  }
  const size = await readLogSize(sql, logId);
  return `${acknowledged}, and the database ends at ${size}: acknowledged submissions from index ${size} on are missing`;
}
