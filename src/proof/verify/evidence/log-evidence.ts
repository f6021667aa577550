/** Evidence of the log itself and of the C2SP witnesses that cosign it: signature lines of the checkpoint's note. */
import type { BundleBatch } from '../../../../gen/attestation/v1/bundle_pb.js';
import { LOG_WITNESS_NAME } from '../../bundle/bundle.js';
import { fromUtf8 } from '../../bytes/encoding.js';
import { verifyCosignature } from '../../log/cosignature.js';
import {
  encodeSignatureLine,
  isSameKey,
  type Note,
  type NoteSignature,
  parseNote,
  parseSignatureLines,
} from '../../log/note.js';
import { endOfSecond } from '../instant.js';
import { problemOf } from '../read/read-json.js';
import { type CheckStatus, failed, passed } from '../report.js';
import { isValidAt, type Trust, type TrustedCosigner } from '../trust.js';
import {
  agrees,
  type Evidence,
  type Finding,
  refuted,
  uncheckable,
  unknownWitness,
  vouched,
  wrongName,
} from './evidence.js';

/** Checks that the log's evidence is this checkpoint, whose signature step 6 has checked. */
export function checkLogEvidence(evidence: Evidence, batch: BundleBatch, signed: CheckStatus): Finding {
  const { witness, checkpoint, path } = evidence;
  const { name } = witness;
  if (name !== checkpoint.origin && name !== LOG_WITNESS_NAME) return wrongName(evidence);
  if (signed === 'failed') {
    return refuted(evidence, 'not_signed', 'the checkpoint is not signed by a trusted log');
  }
  if (!isCopy(witness.evidence, checkpoint.note)) {
    return refuted(evidence, 'not_in_note', 'the evidence is another checkpoint');
  }
  if (!agrees(witness, { log_index: Number(batch.firstIndex) })) {
    return {
      check: failed(
        'witness.detail_mismatch',
        `${name}: log_index of the detail is not first_index of the batch`,
        `${path}/detail`,
      ),
    };
  }
  return signed === 'passed'
    ? { check: passed('witness.verified', `${name} signed the checkpoint`) }
    : uncheckable(evidence, 'checkpoint_not_checked', 'its checkpoint could not be checked');
}

/**
 * Checks the cosignatures of a witness: the note must have them, and each by one of the witness's keys in the trust
 * roots must be valid, one at least. Lines by other keys are ignored.
 */
export async function checkCosignature(evidence: Evidence, trust: Trust): Promise<Finding> {
  const { witness, checkpoint } = evidence;
  try {
    const lines = parseSignatureLines(fromUtf8(witness.evidence));
    if (!areIn(checkpoint.note, lines)) {
      return refuted(evidence, 'not_in_note', 'the checkpoint lacks this cosignature');
    }
    const keys = trust.cosigners.filter(({ name }) => name === witness.name);
    if (keys.length === 0) {
      const isKnown = trust.cosigners.some(({ key }) => lines.some((line) => isSameKey(line, key)));
      return isKnown ? wrongName(evidence) : unknownWitness(evidence);
    }
    return await checkLines(evidence, lines, keys);
  } catch (error) {
    return refuted(evidence, 'malformed', problemOf(error));
  }
}

async function checkLines(
  evidence: Evidence,
  lines: readonly NoteSignature[],
  cosigners: readonly TrustedCosigner[],
): Promise<Finding> {
  const { checkpoint, witness } = evidence;
  const own = cosigners.flatMap((cosigner) =>
    lines.filter((line) => isSameKey(line, cosigner.key)).map((line) => ({ cosigner, line })),
  );
  const checks = own.map(async ({ cosigner, line }) => {
    const seconds = await verifyCosignature(checkpoint.note.text, line, cosigner.key);
    return seconds === undefined ? [] : [{ cosigner, line, seconds }];
  });
  if (own.length === 0) {
    return uncheckable(evidence, 'unknown_key', 'it signed with a key that is not in the trust roots');
  }
  const signed = (await Promise.all(checks)).flat();
  if (signed.length === 0 || signed.length < own.length) {
    return refuted(evidence, 'bad_cosignature', 'the cosignature is not valid');
  }
  const first = earliest(signed);
  const trusted = signed.filter(({ cosigner, seconds }) => isValidAt(cosigner, new Date(seconds * 1000)));
  if (trusted.length === 0) {
    return refuted(evidence, 'not_trusted_then', `its key was not trusted at ${instant(first)}`);
  }
  // The time of a line by an unknown key may be the earliest that `detail` has.
  const isAllKnown = lines.every((line) => signed.some((known) => known.line === line));
  const detail = isAllKnown ? { cosigned_at: instant(first) } : (witness.detail ?? {});
  return vouched(evidence, endOfSecond(earliest(trusted)), detail);
}

function earliest(signed: readonly { readonly seconds: number }[]): number {
  return Math.min(...signed.map(({ seconds }) => seconds));
}

function instant(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}

/**
 * Whether the evidence is empty, or the same note with fewer signature lines: cosignatures may have been added since.
 */
function isCopy(evidence: Uint8Array, note: Note): boolean {
  if (evidence.length === 0) return true;
  try {
    const copy = parseNote(fromUtf8(evidence));
    return copy.text === note.text && areIn(note, copy.signatures);
  } catch {
    return false;
  }
}

function areIn(note: Note, lines: readonly NoteSignature[]): boolean {
  const known = note.signatures.map(encodeSignatureLine);
  return lines.every((line) => known.includes(encodeSignatureLine(line)));
}
