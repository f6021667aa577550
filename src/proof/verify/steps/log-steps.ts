/** Steps 5 and 6: the log includes the leaf at each checkpoint, and signed each checkpoint. */

import { type EnvironmentName, environmentNumber } from '../../../protocol/environment.js';
import { toHex } from '../../bytes/encoding.js';
import { equalBytes } from '../../bytes/primitives.js';
import { verifyNoteSignature } from '../../log/checkpoint.js';
import { verifyCosignature } from '../../log/cosignature.js';
import { checkLogSignature } from '../../log/log-signature.js';
import { leafHash, verifyInclusion } from '../../log/merkle.js';
import { isSameKey, type NoteKey, type NoteSignature, noteKeyHash } from '../../log/note.js';
import type { Memo } from '../memo.js';
import type { ParsedBundle, ParsedCheckpoint } from '../read/parsed-bundle.js';
import { type Check, type CheckStatus, failed, missing, notChecked, passed } from '../report.js';
import type { Trust, TrustedLog } from '../trust.js';

/** Checks the leaf's inclusion in every checkpoint, and that its index lies in its batch. */
export function checkInclusion({ entry, batch, checkpoints }: ParsedBundle): Check[] {
  const hash = leafHash(entry.body);
  const checks = checkpoints.map(({ size, rootHash, inclusionProof }, i) =>
    verifyInclusion({ leafHash: hash, index: entry.logIndex, size, root: rootHash }, inclusionProof)
      ? passed('inclusion.valid', `the leaf is in the log of ${leaves(size)}`)
      : failed(
          'inclusion.invalid',
          `the leaf is not proven to be in the log of ${leaves(size)}`,
          `/checkpoints/${i}/inclusion_proof`,
        ),
  );
  if (entry.logIndex < Number(batch.firstIndex) || entry.logIndex >= Number(batch.treeSize)) {
    checks.push(failed('inclusion.not_in_batch', 'the leaf does not lie in its batch', '/batch/first_index'));
  }
  return checks;
}

/** Checks of one checkpoint: the log's signature first, then the others. */
export type CheckpointChecks = readonly [signed: Check, ...cosigned: Check[]];

/** The trust in checkpoints. `memo` must be of this trust and environment. */
type CheckpointTrust = {
  readonly trust: Trust;
  readonly environment: EnvironmentName;
  readonly memo: Memo<CheckpointChecks>;
};

/**
 * Checks the log's signature on every checkpoint, and the other signatures whose keys are known. `signed` has the status
 * of the log's signature by tree size.
 */
export async function checkCheckpoints(
  { entry, checkpoints }: ParsedBundle,
  against: CheckpointTrust,
): Promise<{ checks: Check[]; signed: Map<number, CheckStatus> }> {
  const checks: Check[] = [];
  const signed = new Map<number, CheckStatus>();
  for (const [i, checkpoint] of checkpoints.entries()) {
    const [byLog, ...cosigned] = await against.memo(`${i} ${toHex(entry.logId)} ${checkpoint.envelope}`, () =>
      checkSignatures(checkpoint, entry.logId, `/checkpoints/${i}/note`, against),
    );
    signed.set(checkpoint.size, byLog.status);
    checks.push(byLog, ...cosigned);
  }
  return { checks, signed };
}

async function checkSignatures(
  checkpoint: ParsedCheckpoint,
  logId: Uint8Array,
  path: string,
  { trust, environment }: CheckpointTrust,
): Promise<CheckpointChecks> {
  const log = findLog(checkpoint.origin, logId, trust);
  const signed =
    log === undefined
      ? unknownLog(checkpoint, trust, path)
      : await checkSignature(checkpoint, log, environment, path);
  const second = log?.mlDsaKey && (await checkMlDsaSignature(checkpoint, log.mlDsaKey, path));
  const others = checkpoint.note.signatures.filter((line) => !isByLog(line, log));
  const cosigned = await Promise.all(others.map((line) => checkCosigner(checkpoint, line, trust, path)));
  return [signed, ...(second ? [second] : []), ...cosigned];
}

function isByLog(line: NoteSignature, log: TrustedLog | undefined): boolean {
  return [log?.key, log?.mlDsaKey].some((key) => key !== undefined && isSameKey(line, key));
}

/**
 * Checks that no checkpoint is later than the end of its log: a closed log signs nothing. Checks nothing if no time is
 * proven: the policy decides whether one is needed.
 */
export function checkLogEnd(
  { entry, checkpoints }: ParsedBundle,
  trust: Trust,
  provenTime: Date | undefined,
): Check[] {
  const end = findLog(checkpoints[0]?.origin ?? '', entry.logId, trust)?.validTo;
  if (end === undefined || provenTime === undefined || provenTime <= end) return [];
  const message = `the log was closed before ${end.toISOString()}, and no witness vouched for this by then`;
  return [failed('checkpoint.log_closed', message)];
}

/** Finds the trusted log by origin and log id, the hash over origin and key. */
function findLog(origin: string, logId: Uint8Array, trust: Trust): TrustedLog | undefined {
  return trust.logs.find(
    ({ key }) => key.name === origin && equalBytes(noteKeyHash(origin, key.publicKey), logId),
  );
}

async function checkSignature(
  { size, note, hasExtensions }: ParsedCheckpoint,
  log: TrustedLog,
  environment: EnvironmentName,
  path: string,
): Promise<Check> {
  if (log.environment !== environmentNumber(environment)) {
    return failed('checkpoint.wrong_environment', 'the log is of the other environment', path);
  }
  if (!(await verifyNoteSignature(note, log.key))) {
    const message = `the checkpoint of ${leaves(size)} is not signed by its log`;
    return failed('checkpoint.bad_signature', message, path);
  }
  return hasExtensions
    ? missing('checkpoint.unknown_lines', 'the log signed lines that this version does not know')
    : passed('checkpoint.signed', `the log ${log.key.name} signed its checkpoint of ${leaves(size)}`);
}

/** A log of an origin that the trust roots have under another key is not that log; of another origin it may be newer. */
function unknownLog({ origin }: ParsedCheckpoint, trust: Trust, path: string): Check {
  return trust.logs.some(({ key }) => key.name === origin)
    ? failed('checkpoint.unknown_log', 'the log is not the one of its name in the trust roots', path)
    : missing('checkpoint.unknown_log', 'the log is not in the trust roots');
}

/** Checks the log's second signature. Checkpoints from before the log had the key, or processes without it, lack one. */
async function checkMlDsaSignature(
  { size, note }: ParsedCheckpoint,
  key: NoteKey,
  path: string,
): Promise<Check> {
  switch (await checkLogSignature(note, key)) {
    case 'valid':
      return passed(
        'checkpoint.signed_ml_dsa',
        `${key.name} signed its checkpoint of ${leaves(size)} with ML-DSA-44`,
      );
    case 'absent':
      return notChecked(
        'checkpoint.no_ml_dsa',
        `the checkpoint of ${leaves(size)} has no signature by ML-DSA-44`,
      );
    case 'wrong':
      return failed('checkpoint.bad_ml_dsa', 'the ML-DSA-44 signature of the log is not valid', path);
  }
}

function leaves(size: number): string {
  return size === 1 ? '1 leaf' : `${size} leaves`;
}

async function checkCosigner(
  { note }: ParsedCheckpoint,
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
