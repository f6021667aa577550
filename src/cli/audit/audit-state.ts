/** The state file of `attest audit`: each log's last checkpoint and the full subtrees of its tree. */

import { fromBase64, toBase64 } from '../../proof/bytes/encoding.js';
import { equalBytes } from '../../proof/bytes/primitives.js';
import { openCheckpoint } from '../../proof/log/checkpoint.js';
import { type Frontier, foldRight, HASH_BYTES } from '../../proof/log/merkle.js';
import type { NoteKey } from '../../proof/log/note.js';
import { readOptionalFile } from '../../server/core/read-optional-file.js';
import { writeFileAtomic } from '../../server/core/write-file-atomic.js';
import { UsageError } from '../cli.js';
import type { SourcedNote } from './audit-checkpoints.js';

/** Where a log's last audit ended: the checkpoint's signed note and the tree's full subtrees in base64. */
type AuditedLog = { checkpoint: string; subtrees: string[] };

/** Keyed by log origin. */
export type AuditState = Map<string, AuditedLog>;

const MAX_SUBTREES = 53;

/** Reads the file; returns an empty map if it does not exist. Throws UsageError if it cannot be read or parsed. */
export async function readAuditState(file: string): Promise<AuditState> {
  try {
    return new Map(Object.entries(JSON.parse((await readOptionalFile(file)) ?? '{}')));
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`);
  }
}

/** Writes the file atomically. Throws UsageError if it cannot be written. */
export async function writeAuditState(file: string, state: AuditState): Promise<void> {
  const json = `${JSON.stringify(Object.fromEntries(state), undefined, 2)}\n`;
  await writeFileAtomic(file, json).catch((error: Error) => {
    throw new UsageError(`${file} cannot be written: ${error.message}`);
  });
}

/** Where to resume the audit of a log: the end of the last one, or 0. Throws UsageError if the state is damaged. */
export async function resumePoint(
  state: AuditState,
  key: NoteKey,
): Promise<{ frontier: Frontier; notes: SourcedNote[] }> {
  const audited = state.get(key.name);
  if (audited === undefined) return { frontier: { size: 0, subtrees: [] }, notes: [] };
  try {
    const { size, rootHash } = await openCheckpoint(audited.checkpoint, key);
    const subtrees = audited.subtrees.slice(0, MAX_SUBTREES).map((hash) => fromBase64(hash, HASH_BYTES));
    if (!equalBytes(foldRight(subtrees), rootHash))
      throw new Error('its subtrees do not match its checkpoint');
    return { frontier: { size, subtrees }, notes: [{ note: audited.checkpoint, from: 'the last audit' }] };
  } catch (error) {
    throw new UsageError(`the state of ${key.name} is damaged: ${(error as Error).message}`);
  }
}

/** The state to store after an audit. */
export function toAuditedLog(checkpoint: string, { subtrees }: Frontier): AuditedLog {
  return { checkpoint, subtrees: subtrees.map(toBase64) };
}
