/** Signed checkpoints from anywhere, each with those who vouch for it. */
import { FormatError } from '../../../proof/bytes/format-error.js';
import { equalBytes } from '../../../proof/bytes/primitives.js';
import {
  parseCheckpoint,
  type SignedCheckpoint,
  verifyNoteSignature,
} from '../../../proof/log/checkpoint.js';
import { verifyCosignature } from '../../../proof/log/cosignature.js';
import { checkLogSignature } from '../../../proof/log/log-signature.js';
import { isSameKey, type Note, type NoteKey } from '../../../proof/log/note.js';
import { isValidAt, type Trust, type TrustedCosigner, type TrustedLog } from '../../../proof/verify/trust.js';
import type { SourcedNote } from './audit-checkpoints.js';

/** A witness that cosigned a checkpoint, its key, and when, in Unix seconds. */
export type Cosigned = { readonly name: string; readonly key: NoteKey; readonly seconds: number };

/** A checkpoint that its log or a trusted witness signed. */
export type SeenCheckpoint = SignedCheckpoint & {
  /** The signed note. */
  readonly envelope: string;
  readonly from: string;
  readonly isSigned: boolean;
  /** The state of the log's second signature; undefined if the trust roots have no key for it. */
  readonly mlDsa: 'valid' | 'absent' | 'wrong' | undefined;
  readonly cosigned: readonly Cosigned[];
  /** The log, if its second signature does not verify, and known witnesses whose cosignatures do not. */
  readonly forged: readonly string[];
};

/** Whose signatures count. */
export type Signers = { readonly log: TrustedLog; readonly cosigners: Trust['cosigners'] };

/** Verifies a checkpoint. Throws FormatError if it is malformed, of another log, or has no trusted signature. */
export async function openSeen(
  { note: envelope, from }: SourcedNote,
  signers: Signers,
): Promise<SeenCheckpoint> {
  const checkpoint = parseCheckpoint(envelope);
  const { key } = signers.log;
  if (checkpoint.origin !== key.name) throw new FormatError('a checkpoint is of another log');
  const isSigned = await verifyNoteSignature(checkpoint.note, key);
  const { cosigned, forged } = await checkCosigners(checkpoint.note, signers.cosigners);
  if (!isSigned && cosigned.length === 0) throw new FormatError('a checkpoint is not signed by its log');
  const { mlDsaKey } = signers.log;
  const mlDsa = mlDsaKey && (await checkLogSignature(checkpoint.note, mlDsaKey));
  if (mlDsa === 'wrong') forged.push(`${key.name} by ML-DSA-44`);
  return { ...checkpoint, envelope, from, isSigned, mlDsa, cosigned, forged };
}

/** Everybody who vouches for both: the log, witnesses. */
export function vouchersOfBoth(a: SeenCheckpoint, b: SeenCheckpoint): string[] {
  const witnesses = a.cosigned
    .map(({ name }) => name)
    .filter((name) => b.cosigned.some((one) => one.name === name));
  return [...(a.isSigned && b.isSigned ? [a.origin] : []), ...new Set(witnesses)];
}

/** Whether two checkpoints are of one tree. */
export function isSameTree(a: SeenCheckpoint, b: SeenCheckpoint): boolean {
  return a.size === b.size && equalBytes(a.rootHash, b.rootHash);
}

async function checkCosigners(
  note: Note,
  cosigners: readonly TrustedCosigner[],
): Promise<{ cosigned: Cosigned[]; forged: string[] }> {
  const cosigned: Cosigned[] = [];
  const forged: string[] = [];
  for (const cosigner of cosigners) {
    for (const line of note.signatures.filter((one) => isSameKey(one, cosigner.key))) {
      const seconds = await verifyCosignature(note.text, line, cosigner.key);
      if (seconds === undefined) forged.push(cosigner.name);
      else if (isValidAt(cosigner, new Date(seconds * 1000))) cosigned.push({ ...cosigner, seconds });
    }
  }
  return { cosigned, forged };
}
