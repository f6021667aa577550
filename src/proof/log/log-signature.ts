/** The signatures of a log on its own checkpoint: Ed25519 over the note's text, or one of the forms of cosignatures. */
import { utf8 } from '../bytes/encoding.js';
import {
  type Checkpoint,
  type CheckpointSigner,
  checkpointBody,
  signCheckpoint,
  verifyNoteSignature,
} from './checkpoint.js';
import { cosign, verifyTimedSignature } from './cosignature.js';
import {
  appendSignatures,
  ED25519_NOTE_KEY,
  isSameKey,
  ML_DSA_44_NOTE_KEY,
  type Note,
  type NoteKey,
  parseNote,
} from './note.js';

/** The keys of a log: Ed25519, and maybe ML-DSA-44 for the time when Ed25519 can be forged. */
export type LogSigner = {
  readonly publicKey: Uint8Array;
  readonly sign: (data: Uint8Array) => Uint8Array | Promise<Uint8Array>;
  readonly mlDsa?: CheckpointSigner;
};

/**
 * The checkpoint as a note signed with each key of its log, Ed25519 first. The second signature states no time. Rejects
 * if a key does not sign.
 */
export async function signLogCheckpoint(checkpoint: Checkpoint, signer: LogSigner): Promise<string> {
  const signature = await signer.sign(utf8(checkpointBody(checkpoint)));
  const note = signCheckpoint(checkpoint, { publicKey: signer.publicKey, sign: () => signature });
  if (signer.mlDsa === undefined) return note;
  const second = { ...signer.mlDsa, name: checkpoint.origin, type: ML_DSA_44_NOTE_KEY };
  return appendSignatures(note, [cosign(parseNote(note).text, 0, second)]);
}

/** `absent`: no line of the note claims to be by the key. `wrong`: one does and is not, or more than one does. */
type LogSignature = 'valid' | 'absent' | 'wrong';

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
