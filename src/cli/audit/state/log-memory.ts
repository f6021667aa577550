/** The memory of an audit: what it has verified of a log. */
import type { AuditedTree } from '../../../proof/log/audit.js';
import { isSameTree, type SeenCheckpoint } from '../checkpoint/seen-checkpoint.js';

/** A checkpoint whose root follows from the entries, and its tree. `seenAt` is when it was first seen. */
export type VerifiedTree = {
  readonly checkpoint: SeenCheckpoint;
  readonly tree: AuditedTree;
  readonly seenAt?: Date;
};

/** `read` is the tree of entries behind the tip that were read so far. `notes` are consistent with the tip. */
export type LogMemory = {
  readonly tip?: VerifiedTree;
  readonly read?: AuditedTree;
  readonly notes: readonly SeenCheckpoint[];
};

/** How many notes are kept: what contradicts an older checkpoint contradicts the tip as well. */
const MAX_NOTES = 32;

/** Adds notes to those that are kept, one for each tree. */
export function keepNotes(
  kept: readonly SeenCheckpoint[],
  added: readonly SeenCheckpoint[],
): SeenCheckpoint[] {
  const notes = [...kept];
  for (const note of added) if (!notes.some((one) => isSameTree(one, note))) notes.push(note);
  return notes.length === kept.length ? notes : notes.slice(-MAX_NOTES);
}
