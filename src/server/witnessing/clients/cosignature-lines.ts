/** The body of a C2SP witness's answer to add-checkpoint: note signature lines. */
import { fromUtf8, utf8 } from '../../../proof/bytes/encoding.js';
import { FormatError } from '../../../proof/bytes/format-error.js';
import { verifyCosignature } from '../../../proof/log/cosignature.js';
import {
  encodeSignatureLine,
  isSameKey,
  type NoteKey,
  type NoteSignature,
  parseSignatureLines,
} from '../../../proof/log/note.js';
import { WitnessRequestError } from './bounded-request.js';
import type { WitnessEvidence } from './witness.js';

/**
 * Verifies the cosignatures by the witness's keys over a checkpoint body; `evidence` is their lines, in the order of the
 * keys, `detail` is `{cosigned_at}`, the earliest. Lines by other keys are ignored. Throws WitnessRequestError if there is
 * none, or one of them is wrong.
 */
export async function readCosignatures(
  answer: Uint8Array,
  body: string,
  keys: readonly NoteKey[],
): Promise<WitnessEvidence> {
  const lines = parseLines(answer);
  const own = keys.flatMap((key) =>
    lines.filter((line) => isSameKey(line, key)).map((line) => ({ key, line })),
  );
  if (own.length === 0) throw badAnswer(otherKeyReason(lines, keys));
  const times = await Promise.all(own.map(({ key, line }) => verifyCosignature(body, line, key)));
  const earliest = Math.min(...times.map((time) => time ?? Number.NaN));
  if (!(earliest * 1000 <= MAX_DATE_MS)) {
    throw badAnswer('a cosignature by its verifier_key is not valid over the checkpoint');
  }
  return {
    evidence: utf8(own.map(({ line }) => encodeSignatureLine(line)).join('')),
    detail: { cosigned_at: new Date(earliest * 1000).toISOString() },
  };
}

/** The last year that has four digits, as RFC 3339 wants them. */
const MAX_DATE_MS = Date.UTC(9999, 0);

function parseLines(answer: Uint8Array): NoteSignature[] {
  try {
    return parseSignatureLines(fromUtf8(answer));
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    throw badAnswer('its answer is not signature lines: is the url that of a C2SP witness?');
  }
}

function otherKeyReason(lines: readonly NoteSignature[], keys: readonly NoteKey[]): string {
  const signed = lines.map(({ name, keyId }) => `${name}+${keyId}`).join(' and ');
  const wanted = keys.map(({ name, keyId }) => `${name}+${keyId}`).join(' or ');
  return `it signed as ${signed.slice(0, 300)}, not as ${wanted}, its verifier_key`;
}

function badAnswer(reason: string): WitnessRequestError {
  return new WitnessRequestError('bad_answer', `the witness answered, but ${reason}`);
}
