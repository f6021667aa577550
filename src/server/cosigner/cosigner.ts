/** A C2SP witness (tlog-witness): checks that logs only grow, and cosigns their checkpoints. */
import { FormatError } from '../../proof/bytes/format-error.js';
import { equalBytes } from '../../proof/bytes/primitives.js';
import { type AddCheckpoint, parseAddCheckpoint, TLOG_SIZE_TYPE } from '../../proof/log/add-checkpoint.js';
import { type Checkpoint, parseExtensibleBody } from '../../proof/log/checkpoint.js';
import { type Cosigner, cosign } from '../../proof/log/cosignature.js';
import { checkLogSignature } from '../../proof/log/log-signature.js';
import { emptyRoot, verifyConsistency } from '../../proof/log/merkle.js';
import {
  encodeNote,
  encodeSignatureLine,
  isSameKey,
  ML_DSA_44_NOTE_KEY,
  type Note,
  type NoteKey,
  type NoteSignature,
  parseNote,
} from '../../proof/log/note.js';
import type { Logger } from '../core/logger.js';
import type { History } from './history.js';
import { createQueues } from './queues.js';

/** A log that is witnessed: any of its keys may sign its checkpoints. */
export type KnownLog = { readonly origin: string; readonly keys: readonly NoteKey[] };

/** The response to a request. */
export type Answer = { readonly status: number; readonly contentType: string; readonly body: string };

type CosignerDeps = {
  readonly logs: readonly KnownLog[];
  /** The witness's own keys; each signs every checkpoint. */
  readonly cosigners: readonly Cosigner[];
  readonly history: History;
  readonly nowMs: () => number;
  readonly log: Logger;
};

/** A request whose checkpoint a known log has signed. `signatures` are the log's. */
type Submission = AddCheckpoint & {
  readonly parsed: Note;
  readonly checkpoint: Checkpoint;
  readonly signatures: readonly NoteSignature[];
};

/** Another process on the same folder can be faster this often. */
const TRIES = 3;

/** Answers add-checkpoint as the specification orders. Rejects only if the history cannot be read or written. */
export function createCosigner(deps: CosignerDeps): (request: string) => Promise<Answer> {
  const queues = createQueues();
  return async (request) => {
    const submission = await readSubmission(deps, request);
    if ('status' in submission) return submission;
    const { origin } = submission.checkpoint;
    const answer = await queues.run(origin, () => witness(deps, submission));
    return answer ?? text(503, `too many requests for ${printed(origin)} are open`);
  };
}

/** Checks that need no history: form, origin, signature, sizes. */
async function readSubmission(
  { logs, cosigners }: CosignerDeps,
  request: string,
): Promise<Submission | Answer> {
  try {
    const added = parseAddCheckpoint(request);
    const parsed = parseNote(added.note);
    const checkpoint = parseExtensibleBody(parsed.text);
    const known = logs.find(({ origin }) => origin === checkpoint.origin);
    if (known === undefined) return text(404, 'this witness does not know the log');
    const signatures = await verifySigners(parsed, known);
    if (signatures === undefined) return text(403, 'no valid signature by a known key of the log');
    if (added.oldSize > checkpoint.size) return text(400, 'the old size is above the size of the checkpoint');
    if (!cosigners.some((cosigner) => canSign(cosigner, parsed.text))) {
      return text(400, 'this witness signs no extension lines');
    }
    return { ...added, parsed, checkpoint, signatures };
  } catch (error) {
    if (error instanceof FormatError) return text(400, error.message);
    throw error;
  }
}

/** The log's signatures; undefined if there is none, or one that claims to be by a known key is wrong. */
async function verifySigners(note: Note, { keys }: KnownLog): Promise<NoteSignature[] | undefined> {
  const signers: NoteKey[] = [];
  for (const key of keys) {
    const signature = await checkLogSignature(note, key);
    if (signature === 'wrong') return undefined;
    if (signature === 'valid') signers.push(key);
  }
  const valid = note.signatures.filter((line) => signers.some((key) => isSameKey(key, line)));
  return valid.length === 0 ? undefined : valid;
}

/** Compares with the history, stores the checkpoint, then signs. Runs for one request of a log at a time. */
async function witness(deps: CosignerDeps, submission: Submission): Promise<Answer> {
  const { history, log } = deps;
  const { checkpoint, oldSize, proof } = submission;
  const { origin, size, rootHash } = checkpoint;
  for (let tries = 0; tries < TRIES; tries++) {
    const standing = await history.find(origin);
    const standingSize = standing?.size ?? 0;
    if (standingSize !== oldSize) {
      return { status: 409, contentType: TLOG_SIZE_TYPE, body: `${standingSize}\n` };
    }
    const oldRoot = standing?.rootHash ?? emptyRoot();
    if (!verifyConsistency({ oldSize, oldRoot, newSize: size, newRoot: rootHash }, proof)) {
      report(log, submission, oldRoot);
      if (size === oldSize && proof.length === 0) return text(409, 'another root of this size was cosigned');
      return text(422, 'the checkpoint is not proven to be consistent with the one cosigned before');
    }
    // Read before the checkpoint is stored: at this time none is larger, whatever another process stores next.
    const unixSeconds = Math.floor(deps.nowMs() / 1000);
    if (await history.advance(standing, checkpoint)) return sign(deps, submission, unixSeconds);
  }
  return text(503, 'other processes of this witness were faster: try again');
}

async function sign(deps: CosignerDeps, submission: Submission, unixSeconds: number): Promise<Answer> {
  const { parsed, oldSize, signatures, checkpoint } = submission;
  const own = deps.cosigners
    .filter((cosigner) => canSign(cosigner, parsed.text))
    .map((cosigner) => cosign(parsed.text, unixSeconds, cosigner));
  const note = encodeNote({ text: parsed.text, signatures: [...signatures, ...own] });
  await deps.history.storeNote(checkpoint.origin, note);
  deps.log.info({ origin: checkpoint.origin, from: oldSize, size: checkpoint.size }, 'cosigned');
  return text(200, own.map(encodeSignatureLine).join(''));
}

/** ML-DSA-44 cosignatures do not cover extension lines: such a checkpoint is not signed with them. */
function canSign({ type }: Cosigner, body: string): boolean {
  return type !== ML_DSA_44_NOTE_KEY || body.split('\n').length === 4;
}

/** Two roots that a log signed for one size prove that it forked; a wrong proof alone proves nothing. */
function report(log: Logger, { checkpoint, oldSize, note }: Submission, oldRoot: Uint8Array): void {
  const { origin, size, rootHash } = checkpoint;
  if (size === oldSize && !equalBytes(rootHash, oldRoot)) {
    log.fatal(
      { origin, size, note },
      'ALARM: the log signed two histories; keep this note and the cosigned one',
    );
  } else {
    log.warn({ origin, from: oldSize, size }, 'a checkpoint is not proven to be consistent');
  }
}

function text(status: number, body: string): Answer {
  const contentType = 'text/plain; charset=utf-8';
  return { status, contentType, body: body.endsWith('\n') ? body : `${body}\n` };
}

function printed(origin: string): string {
  return origin.slice(0, 100);
}
