/** The signature of a log on its own checkpoint: Ed25519 over the note's text, or one of the forms of cosignatures. */
import { verifyNoteSignature } from './checkpoint.js';
import { verifyTimedSignature } from './cosignature.js';
import { ED25519_NOTE_KEY, isSameKey, type Note, type NoteKey } from './note.js';

/** `absent`: no line of the note claims to be by the key. `wrong`: one does and is not, or more than one does. */
export type LogSignature = 'valid' | 'absent' | 'wrong';

/** Checks a log's signature on its checkpoint. It may lack a time: a log does not vouch for one. */
export async function checkLogSignature(note: Note, key: NoteKey): Promise<LogSignature> {
  const [line, ...more] = note.signatures.filter((signature) => isSameKey(signature, key));
  if (line === undefined) return 'absent';
  if (more.length > 0) return 'wrong';
  const isValid =
    key.type === ED25519_NOTE_KEY
      ? await verifyNoteSignature(note, key)
      : (await verifyTimedSignature(note.text, line, key)) !== undefined;
  return isValid ? 'valid' : 'wrong';
}
