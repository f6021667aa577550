/** The steps about transparency logs: entries are about the signature, included in the log, and the log is trusted. */
import { toBase64, toHex } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { jcsBytes } from '../bytes/jcs.js';
import { equalBytes } from '../bytes/primitives.js';
import { leafHash, verifyInclusion } from '../log/merkle.js';
import { endOfSecond, instantText, type VouchedTime } from '../verify/instant.js';
import { type Check, failed, missing, notChecked, passed } from '../verify/report.js';
import { type LogEntry, UncheckableError } from './bundle.js';
import { isOriginOf, isSignedBy } from './checkpoint.js';
import { checkEntry, type Signed } from './entry.js';
import { isWithin, type SigstoreTrust, type TrustedLogKey } from './trusted-root.js';

/** The check of an entry; `log` is the trusted log of its valid checkpoint, the times are of the log's promise. */
export type LogFinding = { readonly check: Check; readonly log?: TrustedLogKey } & Partial<VouchedTime>;

/** Checks that each entry is about the signature. Needs no trust. */
export async function checkEntries(entries: readonly LogEntry[], signed: Signed): Promise<Check[]> {
  if (entries.length === 0) return [notChecked('entries.none', 'no log entry is in the bundle')];
  return Promise.all(
    entries.map(async (entry) => {
      try {
        await checkEntry(entry, signed);
        return passed('entries.match', 'the log entry is about this signature');
      } catch (error) {
        if (error instanceof UncheckableError) return missing('entries.not_checkable', error.message);
        if (!(error instanceof FormatError)) throw error;
        return failed(
          'entries.mismatch',
          `the log entry is not about this signature: ${error.message}`,
          entry.path,
        );
      }
    }),
  );
}

/** Checks that each entry is included in its checkpoint's tree. Needs no trust. */
export function checkInclusions(entries: readonly LogEntry[]): Check[] {
  if (entries.length === 0) return [notChecked('inclusion.none', 'no log entry is in the bundle')];
  return entries.flatMap((entry) => [checkInclusion(entry), ...checkIndex(entry)]);
}

function checkInclusion({ proof, body, path }: LogEntry): Check {
  const { size, rootHash } = proof.checkpoint;
  const isAgreed = proof.treeSize === size && equalBytes(proof.rootHash, rootHash);
  const claim = { leafHash: leafHash(body), index: proof.index, size, root: rootHash };
  return isAgreed && verifyInclusion(claim, proof.hashes)
    ? passed('inclusion.valid', `the entry is leaf ${proof.index} of the checkpoint’s tree of ${size}`)
    : failed('inclusion.invalid', 'the entry is not in the tree of the checkpoint', `${path}/inclusionProof`);
}

/** Rekor v1 counts over all its trees and names the tree in the origin: there the index is at least that in the tree. */
function checkIndex({ logIndex, proof, path }: LogEntry): Check[] {
  const isOfTree = / - \d+$/.test(proof.checkpoint.origin);
  const isRight = isOfTree ? logIndex >= proof.index : logIndex === proof.index;
  if (isRight) return [];
  const message = 'the index of the entry is not that of its inclusion proof';
  return [failed('inclusion.index_mismatch', message, `${path}/logIndex`)];
}

/** Checks that a trusted log signed each checkpoint and each promise of a time. */
export async function checkLogs(
  entries: readonly LogEntry[],
  trust: SigstoreTrust | undefined,
): Promise<LogFinding[]> {
  if (entries.length === 0) return [{ check: noEntry(trust) }];
  if (trust === undefined) {
    return [{ check: notChecked('checkpoint.no_trust', 'no trusted root was given to check the log with') }];
  }
  return (await Promise.all(entries.map((entry) => checkLog(entry, trust)))).flat();
}

/** The check of a bundle without entries: `not_checked`, and required if the trusted root has logs. */
function noEntry(trust: SigstoreTrust | undefined): Check {
  const isWanted = trust !== undefined && trust.logs.length > 0;
  return isWanted
    ? missing('checkpoint.none', 'no log entry is in the bundle, and the trusted root names logs')
    : notChecked('checkpoint.none', 'no log entry is in the bundle');
}

async function checkLog(entry: LogEntry, trust: SigstoreTrust): Promise<LogFinding[]> {
  const { checkpoint } = entry.proof;
  const logs = trust.logs.filter(({ id }) => equalBytes(id, entry.logId));
  if (logs.length === 0) {
    return [{ check: unknownLog(entry, trust) }];
  }
  const signers = await filterAsync(logs, (log) => isSignedBy(checkpoint, log));
  const [log] = signers;
  const signed: LogFinding = log
    ? { check: passed('checkpoint.signed', `the checkpoint is signed by ${log.name}`), log }
    : {
        check: failed(
          'checkpoint.not_signed',
          'the checkpoint is not signed by the log that the entry names',
          `${entry.path}/inclusionProof/checkpoint`,
        ),
      };
  return entry.promise === undefined ? [signed] : [signed, await checkPromise(entry, entry.promise, logs)];
}

/** A log whose name the trusted root has under another id is not that log; one of another name it may only lack. */
function unknownLog({ path, proof }: LogEntry, { logs }: SigstoreTrust): Check {
  const [code, message] = ['checkpoint.untrusted_log', 'the log is not in the trusted root'];
  const isNamed = logs.some(({ name }) => isOriginOf(proof.checkpoint, name));
  return isNamed ? failed(code, message, `${path}/logId`) : missing(code, message);
}

/** Verifies a signed entry timestamp of Rekor v1: the log's signature over the JCS of its promise. */
async function checkPromise(
  entry: LogEntry,
  promise: Uint8Array,
  logs: readonly TrustedLogKey[],
): Promise<LogFinding> {
  const { body, integratedTime, logId, logIndex } = entry;
  const promised = jcsBytes({ body: toBase64(body), integratedTime, logID: toHex(logId), logIndex });
  const [signer] = await filterAsync(logs, ({ key }) => key.verify(promised, promise));
  const stated = new Date(integratedTime * 1000);
  const latest = endOfSecond(integratedTime);
  return signer && !Number.isNaN(latest.getTime())
    ? {
        check: passed(
          'checkpoint.promised',
          `${signer.name} took the entry no later than ${instantText(latest)}`,
        ),
        stated,
        latest,
      }
    : {
        check: failed(
          'checkpoint.promise_invalid',
          'the time of the entry is not signed by its log',
          `${entry.path}/inclusionPromise`,
        ),
      };
}

/** Checks that the logs' keys were trusted at every stated time. */
export function checkLogTimes(findings: readonly LogFinding[], times: readonly Date[]): Check[] {
  const logs = findings.flatMap(({ log }) => (log ? [log] : []));
  if (logs.length > 0 && times.length === 0) {
    return [
      notChecked('checkpoint.no_time', 'no verified time says whether the log was trusted when it signed'),
    ];
  }
  const outside = logs.flatMap(({ name, span }) =>
    times
      .filter((time) => !isWithin(span, time))
      .map((time) => `${name} was not trusted at ${time.toISOString()}`),
  );
  return outside.map((message) => failed('checkpoint.not_trusted_then', message));
}

async function filterAsync<T>(values: readonly T[], isWanted: (value: T) => Promise<boolean>): Promise<T[]> {
  const wanted = await Promise.all(values.map(isWanted));
  return values.filter((_, i) => wanted[i]);
}
