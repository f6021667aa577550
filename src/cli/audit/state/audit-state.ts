/** The state file of `attest audit`: for each log its last verified checkpoint, the right edge of its tree, and notes seen. */
import { fromBase64, toBase64 } from '../../../proof/bytes/encoding.js';
import { equalBytes } from '../../../proof/bytes/primitives.js';
import { type AuditedTree, EMPTY_TREE } from '../../../proof/log/audit.js';
import { HASH_BYTES } from '../../../proof/log/merkle.js';
import { readFrom, rightEdgeTiles, rootFromTiles } from '../../../proof/log/tile.js';
import { findFileLock } from '../../../server/core/files/file-lock.js';
import { readOptionalFile } from '../../../server/core/files/read-optional-file.js';
import { writeFileAtomic } from '../../../server/core/files/write-file-atomic.js';
import { UsageError } from '../../cli.js';
import { openSeen, type Signers } from '../checkpoint/seen-checkpoint.js';
import type { LogMemory, VerifiedTree } from './log-memory.js';

/** A tree: its size, and the hashes of the unfinished tile of each level in base64, the lowest level first. */
type StoredTree = { size: number; edge: string[] };

/** A log's last verified checkpoint, since when it is known, and how far a longer audit has got. */
type StoredLog = {
  checkpoint?: string;
  edge?: string[];
  seen_at?: string;
  /** The tree of the entries read behind the checkpoint; its root is not yet compared with any. */
  read?: StoredTree;
  /** Signed notes of the log and of others about it, the newest last. */
  notes?: string[];
};

/** Keyed by log origin. */
type AuditState = Map<string, StoredLog>;

/** An open state file. Writes are atomic. */
export type StateFile = {
  readonly state: AuditState;
  save(origin: string, memory: LogMemory): Promise<void>;
  close(): Promise<void>;
};

const DAMAGED = 'it is not what an audit has written';

/** The state of an audit that keeps none. */
export function forgetfulState(): StateFile {
  return { state: new Map(), save: async () => {}, close: async () => {} };
}

/**
 * Opens the file and locks it, by a file beside it that stays. Its state is empty if it does not exist. Throws
 * UsageError if it cannot be read or parsed, or if another process has it open.
 */
export async function openStateFile(file: string): Promise<StateFile> {
  const lock = await findFileLock(`${file}.lock`).catch((error: Error) => {
    throw new UsageError(`${file} cannot be locked: ${causeOf(error).message}`);
  });
  if (lock === undefined) throw new UsageError(`${file} is in use by another audit`);
  const state = await readState(file).catch(async (error: Error) => {
    await lock.release();
    throw new UsageError(`${file} cannot be read: ${error.message}`);
  });
  let written = Promise.resolve();
  const write = async () => {
    const json = `${JSON.stringify(Object.fromEntries(state), undefined, 2)}\n`;
    await writeFileAtomic(file, json).catch((error: Error) => {
      throw new UsageError(`${file} cannot be written: ${error.message}`);
    });
  };
  return {
    state,
    save: (origin, memory) => {
      state.set(origin, toStored(memory));
      written = written.catch(() => {}).then(write);
      return written;
    },
    close: async () => {
      await written.catch(() => {});
      await lock.release();
    },
  };
}

/** Reads the memory of a log. Throws UsageError if the state is damaged. */
export async function recall(state: AuditState, signers: Signers): Promise<LogMemory> {
  const stored = state.get(signers.log.key.name) ?? {};
  try {
    const notes = await Promise.all(
      (stored.notes ?? []).map((note) => openSeen({ note, from: 'an earlier audit' }, signers)),
    );
    const tip = await readTip(stored, signers);
    return {
      notes,
      ...(tip && { tip }),
      ...(stored.read && { read: readTree(stored.read.size, stored.read.edge) }),
    };
  } catch (error) {
    throw new UsageError(`the state of ${signers.log.key.name} is damaged: ${(error as Error).message}`);
  }
}

async function readState(file: string): Promise<AuditState> {
  return new Map(Object.entries(JSON.parse((await readOptionalFile(file)) ?? '{}')));
}

/** A state without the edge is of an earlier version: its checkpoint is compared, and the audit begins anew. */
async function readTip(stored: StoredLog, signers: Signers): Promise<VerifiedTree | undefined> {
  const { checkpoint: note, edge, seen_at: seenAt } = stored;
  if (note === undefined) return undefined;
  const checkpoint = await openSeen({ note, from: 'the last audit' }, signers);
  const tree = edge === undefined ? EMPTY_TREE : readTree(checkpoint.size, edge);
  if (edge !== undefined && !equalBytes(rootFromTiles(tree.size, readFrom(tree.tiles)), checkpoint.rootHash))
    throw new Error('its hashes do not match its checkpoint');
  const at = seenAt === undefined ? undefined : new Date(seenAt);
  return { checkpoint, tree, ...(at && !Number.isNaN(at.getTime()) && { seenAt: at }) };
}

function readTree(size: number, edge: readonly string[]): AuditedTree {
  const refs = rightEdgeTiles(Number.isSafeInteger(size) && size >= 0 ? size : 0);
  if (refs.length !== edge.length) throw new Error(DAMAGED);
  const tiles = refs.map(({ level, index, width }, i) => ({
    level,
    index,
    hashes: fromBase64(edge[i] ?? '', width * HASH_BYTES),
  }));
  return { size, tiles };
}

function toStored({ tip, read, notes }: LogMemory): StoredLog {
  return {
    ...(tip && {
      checkpoint: tip.checkpoint.envelope,
      ...(tip.tree.size === tip.checkpoint.size && { edge: edgeOf(tip.tree) }),
      ...(tip.seenAt && { seen_at: tip.seenAt.toISOString() }),
    }),
    ...(read && { read: { size: read.size, edge: edgeOf(read) } }),
    notes: notes.map(({ envelope }) => envelope),
  };
}

function edgeOf({ tiles }: AuditedTree): string[] {
  return [...tiles].sort((a, b) => a.level - b.level).map(({ hashes }) => toBase64(hashes));
}

function causeOf(error: Error): Error {
  return error.cause instanceof Error ? error.cause : error;
}
