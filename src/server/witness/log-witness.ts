/** A C2SP witness (tlog-witness): it checks that our log only grows, and cosigns its checkpoints. */
import { fromUtf8, utf8 } from '../../proof/bytes/encoding.js';
import {
  ADD_CHECKPOINT_PATH,
  encodeAddCheckpoint,
  findTlogSize,
  TLOG_SIZE_TYPE,
} from '../../proof/log/add-checkpoint.js';
import type { NoteKey } from '../../proof/log/note.js';
import {
  type BoundedAnswer,
  boundedRequest,
  type RequestDeps,
  WitnessRequestError,
} from './bounded-request.js';
import { readCosignatures } from './cosignature-lines.js';
import type { Witness, WitnessEvidence, WitnessedCheckpoint } from './witness.js';

/** A witness's submission prefix, the keys that it signs with, and the bounds of one request. */
type LogWitnessConfig = {
  readonly url: string;
  readonly keys: readonly NoteKey[];
  readonly timeoutMs: number;
  readonly maxBytes: number;
};

/** Creates the witness. Its evidence is the signature lines by its keys, `detail` is `{cosigned_at}`. */
export function logWitness(deps: RequestDeps, config: LogWitnessConfig & { readonly name: string }): Witness {
  return {
    name: config.name,
    kind: 'log_witness',
    ask: async (checkpoint, signal) => ({
      type: 'landed',
      ...(await requestCosignatures(deps, config, checkpoint, signal)),
    }),
  };
}

/**
 * Has a witness cosign a checkpoint, from the size that it is known to have cosigned. If it knows another one, which it
 * tells with status 409, asks once more from there. Throws WitnessRequestError with what an operator can do.
 */
async function requestCosignatures(
  deps: RequestDeps,
  config: LogWitnessConfig,
  checkpoint: WitnessedCheckpoint,
  signal: AbortSignal,
): Promise<WitnessEvidence> {
  const send = (oldSize: number) => sendCheckpoint(deps, config, checkpoint, oldSize, signal);
  let oldSize = Math.min(checkpoint.coveredSize, checkpoint.treeSize);
  let answer = await send(oldSize);
  if (answer.status === 409) {
    oldSize = knownSize(answer, checkpoint, oldSize);
    answer = await send(oldSize);
  }
  if (answer.status !== 200) throw refusal(answer, checkpoint, oldSize, config);
  return readCosignatures(answer.body, fromUtf8(checkpoint.body), config.keys);
}

async function sendCheckpoint(
  deps: RequestDeps,
  { url, timeoutMs, maxBytes }: LogWitnessConfig,
  { note, proveConsistency }: WitnessedCheckpoint,
  oldSize: number,
  signal: AbortSignal,
): Promise<BoundedAnswer> {
  const body = utf8(encodeAddCheckpoint({ oldSize, proof: await proveConsistency(oldSize), note }));
  const headers = { 'content-type': 'text/plain; charset=utf-8' };
  const wanted = { url: below(url, ADD_CHECKPOINT_PATH), method: 'POST', headers, body } as const;
  return boundedRequest(deps, { ...wanted, timeoutMs, maxBytes }, signal);
}

/** The URL of a path below a prefix, which may have a query. */
function below(prefix: string, path: string): string {
  const url = new URL(prefix);
  url.pathname = url.pathname.replace(/\/+$/, '') + path;
  return url.href;
}

/** The size in the body of a 409. Throws if no proof from there is possible, or it is the size that was just sent. */
function knownSize(
  { body, contentType }: BoundedAnswer,
  { origin, treeSize }: WitnessedCheckpoint,
  sentSize: number,
): number {
  const size =
    contentType === TLOG_SIZE_TYPE ? findTlogSize(Buffer.from(body).toString('latin1')) : undefined;
  if (size === undefined || size === sentSize) {
    throw new WitnessRequestError(
      'conflict',
      'the witness answered 409, but not with the size that it knows',
    );
  }
  if (size > treeSize) {
    throw new WitnessRequestError(
      'larger_log',
      `ALARM: the witness has cosigned ${origin} at size ${size}, beyond this checkpoint of size ${treeSize}: unless a newer one has been published meanwhile, the database lost leaves, or someone else signs with the log's key`,
    );
  }
  return size;
}

function refusal(
  answer: BoundedAnswer,
  { origin, treeSize }: WitnessedCheckpoint,
  oldSize: number,
  { keys }: LogWitnessConfig,
): WitnessRequestError {
  const witness = keys[0]?.name ?? 'the witness';
  switch (answer.status) {
    case 400:
      return refused(answer, 'it cannot read the request; the url may be that of another service');
    case 403:
      return refused(
        answer,
        `it has another key for ${origin}: give its operator the verifier_key of the trust roots`,
      );
    case 404:
      return refused(
        answer,
        `it does not know ${origin}: ask the operator of ${witness} to add the log, or check the url`,
      );
    case 409:
      return refused(answer, 'its size changed between two requests: someone else feeds it too');
    case 422:
      return refused(
        answer,
        `ALARM: what it has cosigned of ${origin} at size ${oldSize} is inconsistent with the checkpoint of size ${treeSize}: compare the checkpoint that it serves with ours before anything else is published`,
      );
    case 429:
      return refused(answer, 'it limits the rate of requests: set a longer "every"');
    default:
      return refused(
        answer,
        answer.status >= 500 ? 'it has a fault of its own' : 'this is no answer of a C2SP witness',
      );
  }
}

const MAX_QUOTED = 120;

/** Quotes the beginning of the answer: witnesses say in it what is wrong. */
function refused({ status, body }: BoundedAnswer, reason: string): WitnessRequestError {
  const [line = ''] = Buffer.from(body.subarray(0, 4 * MAX_QUOTED))
    .toString()
    .trim()
    .split('\n', 1);
  const said = line.replace(/[^\x20-\x7e]/g, '?').slice(0, MAX_QUOTED);
  const quoted = said === '' ? '' : ` (${JSON.stringify(said)})`;
  return new WitnessRequestError(
    'http_status',
    `the witness answered with status ${status}${quoted}: ${reason}`,
  );
}
