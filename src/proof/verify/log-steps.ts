/** Steps 5 and 6: the leaf is in the log at each checkpoint, and the log signed each of them. */
import { verifyNoteSignature } from '../checkpoint.js';
import { verifyCosignature } from '../cosignature.js';
import { leafHash, verifyInclusion } from '../merkle.js';
import { isSameKey, type NoteSignature, noteKeyHash } from '../note.js';
import { equalBytes } from '../primitives.js';
import type { BundleFacts, CheckpointFacts } from './facts.js';
import { type Check, failed, notChecked, passed } from './report.js';
import { environmentNumber } from './statement-step.js';
import type { Trust } from './trust.js';

/** Checks the leaf's inclusion in every checkpoint, and that its index lies in its batch. */
export function checkInclusion({ entry, batch, checkpoints }: BundleFacts): Check[] {
  const hash = leafHash(entry.body);
  const checks = checkpoints.map(({ size, rootHash, inclusionProof }, i) =>
    verifyInclusion({ leafHash: hash, index: entry.logIndex, size, root: rootHash }, inclusionProof)
      ? passed('inclusion.valid', `the leaf is in the log of ${size} leaves`)
      : failed(
          'inclusion.invalid',
          `the leaf is not proven to be in the log of ${size} leaves`,
          `/checkpoints/${i}/inclusion_proof`,
        ),
  );
  if (entry.logIndex < Number(batch.firstIndex) || entry.logIndex >= Number(batch.treeSize)) {
    checks.push(failed('inclusion.not_in_batch', 'the leaf does not lie in its batch', '/batch/first_index'));
  }
  return checks;
}

/** Checks the log's signature on every checkpoint, and the other signatures as far as their keys are known. */
export async function checkCheckpoints(
  { entry, checkpoints }: BundleFacts,
  trust: Trust,
  environment: 'live' | 'test',
): Promise<Check[]> {
  const checks: Check[] = [];
  for (const [i, checkpoint] of checkpoints.entries()) {
    checks.push(
      await checkLogSignature(checkpoint, entry.logId, trust, environment, `/checkpoints/${i}/note`),
    );
    for (const line of checkpoint.note.signatures) {
      if (!isLogLine(line, trust))
        checks.push(await checkCosigner(checkpoint, line, trust, `/checkpoints/${i}/note`));
    }
  }
  return checks;
}

async function checkLogSignature(
  { origin, size, note }: CheckpointFacts,
  logId: Uint8Array,
  trust: Trust,
  environment: 'live' | 'test',
  path: string,
): Promise<Check> {
  const log = trust.logs.find(
    ({ key }) => key.name === origin && equalBytes(noteKeyHash(origin, key.publicKey), logId),
  );
  if (log === undefined) return failed('checkpoint.unknown_log', 'the log is not in the trust roots', path);
  if (log.environment !== environmentNumber(environment)) {
    return failed('checkpoint.wrong_environment', 'the log is of the other environment', path);
  }
  return (await verifyNoteSignature(note, log.key))
    ? passed('checkpoint.signed', `the log ${origin} signed its checkpoint of ${size} leaves`)
    : failed('checkpoint.bad_signature', `the checkpoint of ${size} leaves is not signed by its log`, path);
}

async function checkCosigner(
  { note }: CheckpointFacts,
  line: NoteSignature,
  trust: Trust,
  path: string,
): Promise<Check> {
  const keys = trust.cosigners.filter(({ key }) => isSameKey(key, line));
  if (keys.length === 0) {
    return notChecked(
      'checkpoint.unknown_signature',
      'a signature is by a key that is not in the trust roots',
    );
  }
  const times = await Promise.all(keys.map(({ key }) => verifyCosignature(note.text, line, key)));
  return times.some((time) => time !== undefined)
    ? passed('checkpoint.cosigned', `${line.name} cosigned the checkpoint`)
    : failed('checkpoint.bad_cosignature', 'a cosignature is not valid', path);
}

function isLogLine(line: NoteSignature, trust: Trust): boolean {
  return trust.logs.some(({ key }) => isSameKey(key, line));
}
