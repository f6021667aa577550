/** Shared parts of the checks of witness evidence. */
import type { JsonObject } from '@bufbuild/protobuf';
import type { BundleWitness } from '../../../../gen/attestation/v1/bundle_pb.js';
import type { JsonRpc } from '../../evm/json-rpc.js';
import { instantText } from '../instant.js';
import type { ParsedCheckpoint } from '../read/parsed-bundle.js';
import { type Check, failed, notChecked, passed } from '../report.js';

/** One witness's evidence, its checkpoint, and its JSON pointer in the bundle. */
export type Evidence = {
  readonly witness: BundleWitness;
  readonly checkpoint: ParsedCheckpoint;
  readonly path: string;
};

/**
 * The result of checking evidence. `time` is the latest time at which the witness can have signed, by its clock and
 * stated accuracy; `operator` is who runs it. Each is undefined if unknown.
 */
export type Finding = { readonly check: Check; readonly time?: Date; readonly operator?: string };

/**
 * What evidence is checked against beside the trust roots: the verifier's own, never from the bundle. What needs a source
 * that is missing is `not_checked`.
 */
export type EvidenceSources = {
  /** Headers of Bitcoin blocks by height, 80 bytes each. */
  readonly bitcoinHeaders?: ReadonlyMap<number, Uint8Array>;
  /** A node of the EVM chain with this id (EIP-155), if there is one. What it says is believed. */
  readonly evmRpc?: (chainId: number) => JsonRpc | undefined;
};

/** The result for valid evidence; fails if `detail` contradicts it. */
export function vouched(
  evidence: Evidence,
  time: Date,
  expectedDetail: JsonObject,
  operator?: string,
): Finding {
  const { witness } = evidence;
  if (!agrees(witness.detail, expectedDetail)) return detailMismatch(evidence);
  const check = passed('witness.verified', `${witness.name} vouched no later than ${instantText(time)}`);
  return { check, time, ...(operator !== undefined && { operator }) };
}

/** The result for a `detail` that contradicts the evidence. */
export function detailMismatch({ witness, path }: Evidence): Finding {
  const message = `${witness.name}: detail is not what the evidence says`;
  return { check: failed('witness.detail_mismatch', message, `${path}/detail`) };
}

/** The result for invalid evidence. */
export function refuted({ witness, path }: Evidence, code: string, message: string): Finding {
  return { check: failed(`witness.${code}`, `${witness.name}: ${message}`, `${path}/evidence`) };
}

/** The result for a witness that the trust roots do not list, for example a newer one: it does not count. */
export function unknownWitness({ witness }: Evidence): Finding {
  return { check: notChecked('witness.unknown', `${witness.name} is not in the trust roots`) };
}

/** The result for a witness that the trust roots list under another name. */
export function wrongName({ witness, path }: Evidence): Finding {
  const message = `the evidence named ${witness.name} is by another witness`;
  return { check: failed('witness.wrong_name', message, `${path}/name`) };
}

/** Whether `detail`, which proves nothing, has no member that the evidence does not confirm. */
export function agrees(detail: JsonObject | undefined, expected: JsonObject): boolean {
  const known = new Map(Object.entries(expected));
  return Object.entries(detail ?? {}).every(
    ([member, value]) => known.has(member) && known.get(member) === value,
  );
}
