/**
 * The register: per log the newest sealed size and root, kept outside the database. A database that lacks what the
 * register has was restored from an older backup; signing on from there would be a second history.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from '../logger.js';
import { findBatchesBySize, findNewestBatch, findNewestPublishedBatch } from '../store/batches.js';
import type { Pool, Sql } from '../store/connect.js';
import { freezeLog, type Log } from '../store/logs.js';

/** A size of a log and its root there. */
export type RegisterEntry = { origin: string; size: number; rootHash: Uint8Array };

/** A register that cannot be read, or holds what no register holds. */
export class RegisterError extends Error {
  override readonly name = 'RegisterError';
}

/** Remembers the newest entry of each log through anything that happens to the database. */
export type Register = {
  /** The entry of a log, or undefined when there is none; throws RegisterError when that cannot be told. */
  read(origin: string): RegisterEntry | undefined;
  /** Keeps the entry, on disk when it returns, unless a larger one stands. */
  write(entry: RegisterEntry): Promise<void>;
};

/**
 * Replaces a file whole and durably, unless `isWanted` says otherwise at the last moment: a writer that was held up must
 * not undo what others wrote meanwhile.
 */
export type ReplaceFile = (path: string, text: string, isWanted: () => boolean) => Promise<void>;

/** A register of one small file per log in `folder`, each `<size> <hex root>`. */
export function openFileRegister(folder: string, replaceFile: ReplaceFile): Register {
  const pathOf = (origin: string) => join(folder, origin);
  const read = (origin: string) => {
    try {
      const text = readIfThere(pathOf(origin));
      return text === undefined ? undefined : parseEntry(origin, text);
    } catch (error) {
      throw new RegisterError(
        `the checkpoint register's file ${pathOf(origin)} cannot be used: ${(error as Error).message}`,
      );
    }
  };
  return {
    read,
    async write({ origin, size, rootHash }) {
      const isNewer = () => size > (read(origin)?.size ?? -1);
      const text = `${size} ${Buffer.from(rootHash).toString('hex')}\n`;
      if (isNewer()) await replaceFile(pathOf(origin), text, isNewer);
    },
  };
}

function parseEntry(origin: string, text: string): RegisterEntry {
  const match = /^(\d{1,15}) ([0-9a-f]{64})\n$/.exec(text);
  if (match === null) throw new Error('it is not "<size> <root hash>"');
  return { origin, size: Number(match[1]), rootHash: Buffer.from(match[2] ?? '', 'hex') };
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * How the tables stand to the register. `missing`: it cannot be told, because checkpoints were published but the
 * register knows of none, or cannot be read.
 */
export type Comparison =
  | { state: 'consistent' }
  | { state: 'missing'; reason: string }
  | { state: 'fork'; reason: string };

/**
 * Compares a log's tables with its entry in the register. The register is always read before the tables: whatever it
 * holds was in them before.
 */
export async function compareWithRegister(sql: Sql, register: Register, log: Log): Promise<Comparison> {
  try {
    const entry = register.read(log.origin);
    if (entry !== undefined) return await compare(sql, log, entry);
    const published = await findNewestPublishedBatch(sql, log.id);
    if (published === undefined) return { state: 'consistent' };
    const first = register.read(log.origin);
    if (first !== undefined) return await compare(sql, log, first);
  } catch (error) {
    if (!(error instanceof RegisterError)) throw error;
    return { state: 'missing', reason: error.message };
  }
  return {
    state: 'missing',
    reason: `the checkpoint register lacks the log ${log.origin}; see attest log --help`,
  };
}

async function compare(sql: Sql, log: Log, entry: RegisterEntry): Promise<Comparison> {
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
  return { state: 'consistent' };
}

/**
 * Compares, and freezes the log when the tables contradict the register, which the log lines say once. Says whether
 * the log may go on.
 */
export async function checkRegister(
  { pool, register, log }: { pool: Pool; register: Register; log: Logger },
  row: Log,
): Promise<Comparison> {
  const comparison = await compareWithRegister(pool, register, row);
  if (comparison.state === 'fork' && (await freezeLog(pool, row.id, comparison.reason))) {
    log.fatal({ origin: row.origin, reason: comparison.reason }, 'the log is frozen');
  }
  return comparison;
}
