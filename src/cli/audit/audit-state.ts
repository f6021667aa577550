/** What `attest audit` keeps from one audit to the next: each log's newest checkpoint, and the tree as far as it came. */

import { fromBase64, toBase64 } from '../../proof/bytes/encoding.js';
import { equalBytes } from '../../proof/bytes/primitives.js';
import { openCheckpoint } from '../../proof/log/checkpoint.js';
import { type Frontier, foldRight, HASH_BYTES } from '../../proof/log/merkle.js';
import type { NoteKey } from '../../proof/log/note.js';
import { readOptionalFile } from '../../server/core/read-optional-file.js';
import { writeFileAtomic } from '../../server/core/write-file-atomic.js';
import { UsageError } from '../cli.js';
import type { SourcedNote } from './audit-checkpoints.js';

/** How far a log was audited: the checkpoint's signed note and the tree's full subtrees, in base64. */
type AuditedLog = { checkpoint: string; subtrees: string[] };

/** By the logs' origins. */
export type AuditState = Map<string, AuditedLog>;

const MAX_SUBTREES = 53;

/** Reads the file; nothing for one that is not there yet. Throws UsageError for one that is no such state. */
export async function readAuditState(file: string): Promise<AuditState> {
  try {
    return new Map(Object.entries(JSON.parse((await readOptionalFile(file)) ?? '{}')));
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`);
  }
}

/** Writes the file, whole or not at all. Throws UsageError when it cannot be. */
export async function writeAuditState(file: string, state: AuditState): Promise<void> {
  const json = `${JSON.stringify(Object.fromEntries(state), undefined, 2)}\n`;
  await writeFileAtomic(file, json).catch((error: Error) => {
    throw new UsageError(`${file} cannot be written: ${error.message}`);
  });
}

/** Where the audit of a log begins: at the start, or where the last one ended. Throws UsageError for a damaged state. */
export async function resumePoint(
  state: AuditState,
  key: NoteKey,
): Promise<{ frontier: Frontier; notes: SourcedNote[] }> {
  const audited = state.get(key.name);
  if (audited === undefined) return { frontier: { size: 0, subtrees: [] }, notes: [] };
  try {
    const { size, rootHash } = await openCheckpoint(audited.checkpoint, key);
    const subtrees = audited.subtrees.slice(0, MAX_SUBTREES).map((hash) => fromBase64(hash, HASH_BYTES));
    if (!equalBytes(foldRight(subtrees), rootHash)) throw new Error('its parts do not belong together');
    return { frontier: { size, subtrees }, notes: [{ note: audited.checkpoint, from: 'the last audit' }] };
  } catch (error) {
    throw new UsageError(`the state of ${key.name} is damaged: ${(error as Error).message}`);
  }
}

/** What is kept of a log after an audit. */
export function toAuditedLog(checkpoint: string, { subtrees }: Frontier): AuditedLog {
  return { checkpoint, subtrees: subtrees.map(toBase64) };
}
