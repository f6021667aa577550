/** The requests to a C2SP witness (tlog-witness): add-checkpoint, and the newest checkpoint that it has cosigned. */
import { utf8 } from '../../../proof/bytes/encoding.js';
import {
  ADD_CHECKPOINT_PATH,
  encodeAddCheckpoint,
  findTlogSize,
  MAX_ADD_CHECKPOINT_BYTES,
  monitoringPath,
  TLOG_SIZE_TYPE,
} from '../../../proof/log/add-checkpoint.js';
import type { NoteKey } from '../../../proof/log/note.js';
import {
  type BoundedAnswer,
  boundedRequest,
  type RequestDeps,
  WitnessRequestError,
} from './bounded-request.js';
import type { WitnessedCheckpoint } from './witness.js';

/** A witness's submission prefix, which is also its monitoring prefix, and the keys that it signs with. */
export type LogWitnessAddress = { readonly url: string; readonly keys: readonly NoteKey[] };

/** The bounds of one request. */
type Bounds = { readonly timeoutMs: number; readonly maxBytes: number };

/** Sends a checkpoint with the proof that it continues the one of `oldSize`. Throws as `boundedRequest`. */
export async function addCheckpoint(
  deps: RequestDeps,
  { url, timeoutMs, maxBytes }: LogWitnessAddress & Bounds,
  { note, proveConsistency }: Pick<WitnessedCheckpoint, 'note' | 'proveConsistency'>,
  oldSize: number,
  signal: AbortSignal,
): Promise<BoundedAnswer> {
  const body = utf8(encodeAddCheckpoint({ oldSize, proof: await proveConsistency(oldSize), note }));
  const headers = { 'content-type': 'text/plain; charset=utf-8' };
  const wanted = { url: below(url, ADD_CHECKPOINT_PATH), method: 'POST', headers, body } as const;
  return boundedRequest(deps, { ...wanted, timeoutMs, maxBytes }, signal);
}

/** Requests the newest checkpoint that a witness has cosigned of a log, past caches. Throws as `boundedRequest`. */
export async function getCheckpoint(
  deps: RequestDeps,
  { url, timeoutMs }: LogWitnessAddress & Pick<Bounds, 'timeoutMs'>,
  origin: string,
  signal: AbortSignal,
): Promise<BoundedAnswer> {
  const headers = { 'cache-control': 'no-cache' };
  const wanted = { url: below(url, monitoringPath(origin)), method: 'GET', headers } as const;
  return boundedRequest(deps, { ...wanted, timeoutMs, maxBytes: MAX_ADD_CHECKPOINT_BYTES }, signal);
}

/** The URL of a log's newest checkpoint without its query, which may hold a secret. */
export function checkpointUrl(prefix: string, origin: string): string {
  const url = new URL(below(prefix, monitoringPath(origin)));
  url.search = '';
  return url.href;
}

/** The URL of a path below a prefix, which may have a query. */
function below(prefix: string, path: string): string {
  const url = new URL(prefix);
  url.pathname = url.pathname.replace(/\/+$/, '') + path;
  return url.href;
}

/** The size in a witness's response with status 409; undefined if it has none. */
export function findKnownSize({ body, contentType }: BoundedAnswer): number | undefined {
  return contentType === TLOG_SIZE_TYPE ? findTlogSize(Buffer.from(body).toString('latin1')) : undefined;
}

/** The error of a rejected add-checkpoint, with the operator's remedy. `oldSize` is the size that was sent. */
export function refusal(
  answer: BoundedAnswer,
  { origin, treeSize }: Pick<WitnessedCheckpoint, 'origin' | 'treeSize'>,
  oldSize: number,
  { keys }: Pick<LogWitnessAddress, 'keys'>,
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
      if (oldSize === treeSize) {
        return refused(
          answer,
          `ALARM: it has cosigned another root of ${origin} for size ${treeSize}: compare the checkpoint that it serves with ours before anything else is published`,
          'inconsistent',
        );
      }
      return refused(answer, 'its size changed between two requests: someone else feeds it too');
    case 422:
      return refused(
        answer,
        `ALARM: what it has cosigned of ${origin} at size ${oldSize} is inconsistent with the checkpoint of size ${treeSize}: compare the checkpoint that it serves with ours before anything else is published`,
        'inconsistent',
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

/** Quotes the beginning of the answer, in which witnesses describe the error. */
function refused(
  { status, body }: BoundedAnswer,
  reason: string,
  code: WitnessRequestError['code'] = 'http_status',
): WitnessRequestError {
  const [line = ''] = Buffer.from(body.subarray(0, 4 * MAX_QUOTED))
    .toString()
    .trim()
    .split('\n', 1);
  const said = line.replace(/[^\x20-\x7e]/g, '?').slice(0, MAX_QUOTED);
  const quoted = said === '' ? '' : ` (${JSON.stringify(said)})`;
  return new WitnessRequestError(code, `the witness answered with status ${status}${quoted}: ${reason}`);
}
