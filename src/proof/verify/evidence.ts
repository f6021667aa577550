/** What the checks of each kind of evidence have in common. */
import type { JsonObject } from '@bufbuild/protobuf';
import type { BundleWitness } from '../../../gen/attestation/v1/bundle_pb.js';
import { instantText } from './instant.js';
import type { ParsedCheckpoint } from './parsed-bundle.js';
import { type Check, failed, notChecked, passed } from './report.js';

/** One witness's evidence, the checkpoint it is about, and where in the bundle it stands (a JSON pointer). */
export type Evidence = {
  readonly witness: BundleWitness;
  readonly checkpoint: ParsedCheckpoint;
  readonly path: string;
};

/**
 * What was found about it. `time` is when the witness vouched at the latest, by its clock and as exactly as it states
 * it; `operator` is who runs it; each as far as it is known.
 */
export type Finding = { readonly check: Check; readonly time?: Date; readonly operator?: string };

/** Evidence that holds; `detail` must not contradict it. */
export function vouched(
  { witness, path }: Evidence,
  time: Date,
  expectedDetail: JsonObject,
  operator?: string,
): Finding {
  if (!agrees(witness.detail, expectedDetail)) {
    return {
      check: failed(
        'witness.detail_mismatch',
        `${witness.name}: detail is not what the evidence says`,
        `${path}/detail`,
      ),
    };
  }
  const check = passed('witness.verified', `${witness.name} vouched no later than ${instantText(time)}`);
  return { check, time, ...(operator !== undefined && { operator }) };
}

/** Evidence that does not hold. */
export function refuted({ witness, path }: Evidence, code: string, message: string): Finding {
  return { check: failed(`witness.${code}`, `${witness.name}: ${message}`, `${path}/evidence`) };
}

/** Evidence of a witness that the trust roots do not have: it may be newer than they are, and counts for nothing. */
export function unknownWitness({ witness }: Evidence): Finding {
  return { check: notChecked('witness.unknown', `${witness.name} is not in the trust roots`) };
}

/** Evidence of a witness that the trust roots have under another name. */
export function wrongName({ witness, path }: Evidence): Finding {
  const message = `what ${witness.name} is said to have said is by another witness`;
  return { check: failed('witness.wrong_name', message, `${path}/name`) };
}

/** `detail` is an account for readers and proves nothing; it may say less than the evidence does, but nothing else. */
export function agrees(detail: JsonObject | undefined, expected: JsonObject): boolean {
  const known = new Map(Object.entries(expected));
  return Object.entries(detail ?? {}).every(
    ([member, value]) => known.has(member) && known.get(member) === value,
  );
}
