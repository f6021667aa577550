/** Checkpoints of other logs: extension lines may follow the root, and any key may have signed. */

import { toHex, utf8 } from '../bytes/encoding.js';
import { type Checkpoint, parseCheckpointBody } from '../log/checkpoint.js';
import { type Note, parseNote } from '../log/note.js';
import type { TrustedLogKey } from './trusted-root.js';

/** A parsed checkpoint; `note.text` is the signed text. */
export type ForeignCheckpoint = Checkpoint & { readonly note: Note };

/** Parses a signed checkpoint (C2SP tlog-checkpoint). Throws FormatError. Verifies no signature. */
export function parseForeignCheckpoint(envelope: string): ForeignCheckpoint {
  const note = parseNote(envelope);
  const [origin, size, root] = note.text.split('\n', 4);
  return { ...parseCheckpointBody(`${origin}\n${size}\n${root}\n`), note };
}

/** Whether a checkpoint is of the log of this name. Rekor's first logs put the number of the tree behind the name. */
export function isOriginOf({ origin }: ForeignCheckpoint, name: string): boolean {
  return origin === name || origin.startsWith(`${name} - `);
}

/**
 * Whether a log with this key signed the checkpoint. The line is found by its name, which is the host of the log's
 * address, and by the start of the log's id. As for notes, every line that claims to be by that key must verify.
 */
export async function isSignedBy(checkpoint: ForeignCheckpoint, log: TrustedLogKey): Promise<boolean> {
  const { note } = checkpoint;
  const keyId = toHex(log.checkpointId.subarray(0, 4));
  const claimed = note.signatures.filter((line) => line.name === log.name && line.keyId === keyId);
  if (claimed.length === 0 || !isOriginOf(checkpoint, log.name)) return false;
  const text = utf8(note.text);
  const checks = claimed.map(({ signature }) => log.key.verify(text, signature));
  return (await Promise.all(checks)).every(Boolean);
}
