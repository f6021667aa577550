/**
 * The register: per log the newest sealed size and root, kept outside the database. A database that lacks what the
 * register has was restored from an older backup; signing on from there would be a second history.
 */
import { createHash } from 'node:crypto';
import type { Logger } from '../../core/logger.js';
import type { Pool, Sql } from '../../store/database/connect.js';
import {
  type BatchRow,
  findBatchesBySize,
  findNewestBatch,
  findNewestPublishedBatch,
} from '../../store/log/batches.js';
import { freezeLog, type Log } from '../../store/log/logs.js';

/**
 * A size of a log and its root there. `keyHash` is the SHA-256 of the log's public key, the raw 32 bytes: it tells apart
 * installations that share a folder and an origin. Entries of earlier releases lack it.
 */
export type RegisterEntry = {
  origin: string;
  size: number;
  rootHash: Uint8Array;
  keyHash: Uint8Array | undefined;
};

/** A register that cannot be read or written, or holds what no register holds. */
export class RegisterError extends Error {
  override readonly name = 'RegisterError';
}

/** Remembers the newest entry of each log through anything that happens to the database. */
export type Register = {
  /** Where the entry of a log is kept, for messages to operators. */
  location(origin: string): string;
  /** The entry of a log, or undefined when there is none; throws RegisterError when that cannot be told. */
  read(origin: string): Promise<RegisterEntry | undefined>;
  /**
   * Puts `next` in the place of exactly the entry that was read before, or of none. Of several who read the same, one
   * does. Throws RegisterError when it may or may not be there afterwards.
   *
   * @returns whether `next` stands, durable; false when another entry does
   */
  replace(standing: RegisterEntry | undefined, next: RegisterEntry): Promise<boolean>;
};

/** What the register is to have of a log at one of its sizes. */
export function registerEntry(
  log: Log,
  { treeSize, rootHash }: Pick<BatchRow, 'treeSize' | 'rootHash'>,
): RegisterEntry {
  return { origin: log.origin, size: treeSize, rootHash, keyHash: keyHashOf(log) };
}

function keyHashOf({ publicKey }: Log): Uint8Array {
  return createHash('sha256').update(publicKey).digest();
}

/**
 * How the tables stand to the register. `consistent`: with this entry, or with none while nothing was published.
 * `missing`: it cannot be told, because checkpoints were published but the register knows of none, cannot be read, or
 * has the entry of another log.
 */
export type Comparison =
  | { state: 'consistent'; entry: RegisterEntry | undefined }
  | { state: 'missing'; reason: string }
  | { state: 'fork'; reason: string };

/**
 * Compares a log's tables with its entry in the register. The register is always read before the tables: whatever it
 * holds was in them before.
 */
export async function compareWithRegister(sql: Sql, register: Register, log: Log): Promise<Comparison> {
  try {
    const entry = await register.read(log.origin);
    if (entry !== undefined) return await compare(sql, register, log, entry);
    const published = await findNewestPublishedBatch(sql, log.id);
    if (published === undefined) return { state: 'consistent', entry };
    const first = await register.read(log.origin);
    if (first !== undefined) return await compare(sql, register, log, first);
  } catch (error) {
    if (!(error instanceof RegisterError)) throw error;
    return { state: 'missing', reason: error.message };
  }
  return {
    state: 'missing',
    reason: `the checkpoint register lacks the log ${log.origin} (${register.location(log.origin)} is not there); see attest log --help`,
  };
}

async function compare(sql: Sql, register: Register, log: Log, entry: RegisterEntry): Promise<Comparison> {
  if (entry.keyHash !== undefined && Buffer.compare(entry.keyHash, keyHashOf(log)) !== 0) {
    return { state: 'missing', reason: otherInstallationReason(register.location(log.origin), log) };
  }
  const newest = await findNewestBatch(sql, log.id);
  if (newest === undefined || newest.treeSize < entry.size) {
    const has = newest?.treeSize ?? 0;
    return {
      state: 'fork',
      reason: `the register has a checkpoint of size ${entry.size}, the database ends at ${has}`,
    };
  }
  const [sealed] = await findBatchesBySize(sql, [{ logId: log.id, treeSize: entry.size }]);
  if (sealed === undefined || Buffer.compare(sealed.rootHash, entry.rootHash) !== 0) {
    return { state: 'fork', reason: `the register has another root at size ${entry.size} than the database` };
  }
  return { state: 'consistent', entry };
}

function otherInstallationReason(place: string, { origin }: Log): string {
  return `the checkpoint register has the log ${origin} of another installation, with another log key (${place}): two installations share CHECKPOINT_REGISTER and LOG_DOMAIN; give this one a folder of its own`;
}

/**
 * Compares, and freezes the log when the tables contradict the register, which the log lines say once. Says whether
 * the log may go on.
 */
export async function checkRegister(
  { pool, register, log }: { pool: Pool; register: Register; log: Logger },
  row: Log,
): Promise<Comparison> {
  let comparison = await compareWithRegister(pool, register, row);
  if (comparison.state !== 'fork') return comparison;
  const isFrozen = await freezeLog(pool, row.id, async (tx) => {
    comparison = await compareWithRegister(tx, register, row);
    return comparison.state === 'fork' ? comparison.reason : undefined;
  });
  if (isFrozen && comparison.state === 'fork') {
    const { reason } = comparison;
    log.fatal({ origin: row.origin, reason, register: register.location(row.origin) }, 'the log is frozen');
  }
  return comparison;
}
