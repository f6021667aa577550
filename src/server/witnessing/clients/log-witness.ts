/** A C2SP witness (tlog-witness): it checks that our log only grows, and cosigns its checkpoints. */
import { fromUtf8 } from '../../../proof/bytes/encoding.js';
import { type BoundedAnswer, type RequestDeps, WitnessRequestError } from './bounded-request.js';
import { readCosignatures } from './cosignature-lines.js';
import { addCheckpoint, findKnownSize, type LogWitnessAddress, refusal } from './log-witness-requests.js';
import type { Witness, WitnessEvidence, WitnessedCheckpoint } from './witness.js';

/** A witness, and the bounds of one request. */
type LogWitnessConfig = LogWitnessAddress & { readonly timeoutMs: number; readonly maxBytes: number };

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
  const send = (oldSize: number) => addCheckpoint(deps, config, checkpoint, oldSize, signal);
  let oldSize = Math.min(checkpoint.coveredSize, checkpoint.treeSize);
  let answer = await send(oldSize);
  if (answer.status === 409) {
    const reportedSize = findKnownSize(answer) ?? oldSize;
    if (reportedSize === oldSize && oldSize === checkpoint.treeSize)
      throw refusal(answer, checkpoint, oldSize, config);
    oldSize = knownSize(answer, checkpoint, oldSize);
    answer = await send(oldSize);
  }
  if (answer.status !== 200) throw refusal(answer, checkpoint, oldSize, config);
  return readCosignatures(answer.body, fromUtf8(checkpoint.body), config.keys);
}

/** The size in the body of a 409. Throws if no proof from there is possible, or it is the size that was just sent. */
function knownSize(
  answer: BoundedAnswer,
  { origin, treeSize }: WitnessedCheckpoint,
  sentSize: number,
): number {
  const size = findKnownSize(answer);
  if (size === undefined || size === sentSize) {
    throw new WitnessRequestError(
      'conflict',
      'the witness answered 409, but not with the size that it knows',
    );
  }
  if (size > treeSize) {
    throw new WitnessRequestError(
      'larger_log',
      `the witness has cosigned ${origin} at size ${size}, beyond this checkpoint of size ${treeSize}`,
      { knownSize: size },
    );
  }
  return size;
}
