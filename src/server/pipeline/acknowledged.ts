/**
 * The newest acknowledged submission of each log, in this process's memory. A database that lacks it is a promoted
 * asynchronous replica or a restored backup. While the submission is unsealed, nothing durable would reveal the loss.
 */

import { equalBytes } from '../../proof/bytes/primitives.js';
import type { Logger } from '../core/logger.js';
import type { Pool, Sql } from '../store/database/connect.js';
import { findLeafHash, readLogSize } from '../store/log/leaves.js';
import { freezeLog, type Log } from '../store/log/logs.js';

/** A leaf at its index. */
export type Leaf = { logIndex: number; leafHash: Uint8Array };

/** The newest acknowledged leaf of each log. */
export type AcknowledgedLeaves = {
  /** Records a leaf; called before its client gets the response. */
  record(logId: number, leaf: Leaf): void;
  newest(logId: number): Leaf | undefined;
};

/** Starts with no acknowledged leaves. */
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
 * Looks up the newest acknowledged leaf of a log. Freezes the log, and logs that once, if the database does not hold the
 * leaf at its index.
 *
 * @returns the reason for the freeze, or undefined if the leaf exists
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

/** Describes the loss if the leaf is missing. No need to wait for it: all leaves before it were committed first. */
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
