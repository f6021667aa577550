/**
 * The checkpoint register, a rollback guard: per log the newest sealed size and root, stored outside the database. A
 * database that lacks them was restored from an older backup; signing on from there would fork the log.
 */
import { createHash } from 'node:crypto';
import { equalBytes } from '../../../proof/bytes/primitives.js';
import { verifyNoteSignature } from '../../../proof/log/checkpoint.js';
import { noteKey, parseNote } from '../../../proof/log/note.js';
import type { Logger } from '../../core/logger.js';
import type { Pool, Sql } from '../../database/connect.js';
import { extendLog } from '../extend-log.js';
import { proveConsistency } from '../prove-consistency.js';
import { type BatchRow, findStandingBatches } from '../store/batches.js';
import { readLogSize } from '../store/leaves.js';
import { freezeLog, type Log } from '../store/logs.js';

/**
 * A tree size of a log and its root hash. `keyHash` is the SHA-256 of the log's raw 32-byte public key; it distinguishes
 * installations that share a register and an origin. Entries of earlier releases and of witnesses lack it; those of
 * witnesses have the checkpoint's `note`, with the log's signatures.
 */
export type RegisterEntry = {
  origin: string;
  size: number;
  rootHash: Uint8Array;
  keyHash: Uint8Array | undefined;
  note?: string;
};

/** An entry to store: a signed checkpoint, and the RFC 6962 consistency proofs from smaller sizes to it. */
export type NewRegisterEntry = RegisterEntry & {
  note: string;
  /** Throws FormatError if `fromSize` is larger than the entry's. */
  proveConsistency(fromSize: number): Promise<Uint8Array[]>;
};

/** The register cannot be read or written, or its content is malformed. */
export class RegisterError extends Error {
  override readonly name = 'RegisterError';
}

/** Stores the newest entry of each log, independently of the database. */
export type Register = {
  /** The location of a log's entry, for messages to operators. */
  location(origin: string): string;
  /** Returns a log's entry, or undefined if it has none. Throws RegisterError if reading fails. */
  read(origin: string): Promise<RegisterEntry | undefined>;
  /**
   * Compare-and-swap: stores `next` if the current entry equals `standing` (undefined: none), or is one that `next`
   * provably continues. Throws RegisterError if the outcome is unknown.
   *
   * @returns true once `next` is durable, false if the entry was another one
   */
  replace(standing: RegisterEntry | undefined, next: NewRegisterEntry): Promise<boolean>;
};

/** The register entry of one of a log's batches. Its proofs are read from the tables when they are wanted. */
export function registerEntry(
  sql: Sql,
  log: Log,
  { treeSize, rootHash, note }: Pick<BatchRow, 'treeSize' | 'rootHash' | 'note'>,
): NewRegisterEntry {
  return {
    origin: log.origin,
    size: treeSize,
    rootHash,
    keyHash: keyHashOf(log),
    note,
    proveConsistency: (fromSize) => proveConsistency(sql, log.id, fromSize, treeSize),
  };
}

function keyHashOf({ publicKey }: Log): Uint8Array {
  return createHash('sha256').update(publicKey).digest();
}

/**
 * The result of comparing the tables with the register. `consistent`: they agree with this entry, or nothing was
 * published yet; with the newest batch at that moment. `behind`: the tables lack the batch of the entry, and their leaves
 * give its root, as after a failover to a standby that had the leaves and not yet the batch. `missing`: unknown, because checkpoints were published and the
 * register has no entry, cannot be read, or holds the entry of another log. `fork`: they contradict each other.
 */
type Comparison =
  | { state: 'consistent'; entry: RegisterEntry | undefined; newest: BatchRow | undefined }
  | { state: 'behind'; entry: RegisterEntry; newest: BatchRow | undefined }
  | { state: 'missing'; reason: string }
  | { state: 'fork'; reason: string };

/**
 * Compares a log's tables with its register entry. Reads the register before the tables, because every entry was in the
 * tables first.
 */
export async function compareWithRegister(sql: Sql, register: Register, log: Log): Promise<Comparison> {
  try {
    const entry = await register.read(log.origin);
    if (entry !== undefined) return await compare(sql, register, log, entry);
    const { newest, published } = await findStandingBatches(sql, log.id, 0);
    if (published === undefined) return { state: 'consistent', entry, newest };
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
  if (!(await isOfLog(entry, log))) {
    return { state: 'missing', reason: otherInstallationReason(register.location(log.origin), log) };
  }
  const { newest, ofSize } = await findStandingBatches(sql, log.id, entry.size);
  if (newest === undefined || newest.treeSize < entry.size) return compareLeaves(sql, log, entry, newest);
  if (ofSize === undefined || Buffer.compare(ofSize.rootHash, entry.rootHash) !== 0) {
    return { state: 'fork', reason: `the register has another root at size ${entry.size} than the database` };
  }
  return { state: 'consistent', entry, newest };
}

/** Compares leaves that are in no batch with an entry beyond the newest one. */
async function compareLeaves(
  sql: Sql,
  log: Log,
  entry: RegisterEntry,
  newest: BatchRow | undefined,
): Promise<Comparison> {
  const leaves = await readLogSize(sql, log.id);
  const has = `the database has leaves up to ${leaves} and batches up to ${newest?.treeSize ?? 0}`;
  if (leaves < entry.size)
    return { state: 'fork', reason: `the register has a checkpoint of size ${entry.size}, ${has}` };
  const { rootHash } = await extendLog(sql, log, newest, entry.size);
  if (equalBytes(rootHash, entry.rootHash)) return { state: 'behind', entry, newest };
  return {
    state: 'fork',
    reason: `the register has a checkpoint of size ${entry.size} with another root than the leaves; ${has}`,
  };
}

/** Whether the entry was written by an installation with this log's key. */
async function isOfLog({ keyHash, note }: RegisterEntry, log: Log): Promise<boolean> {
  if (keyHash !== undefined) return Buffer.compare(keyHash, keyHashOf(log)) === 0;
  return note === undefined || verifyNoteSignature(parseNote(note), noteKey(log.origin, log.publicKey));
}

function otherInstallationReason(place: string, { origin }: Log): string {
  return `the checkpoint register has the log ${origin} of another installation, with another log key (${place}): two installations share CHECKPOINT_REGISTER and LOG_DOMAIN; give this one a register of its own`;
}

/**
 * Compares a log with the register. Freezes the log, and logs that once, if they contradict each other.
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
