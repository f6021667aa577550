/** Shared parts of the checks of witness evidence. */
import type { JsonObject } from '@bufbuild/protobuf';
import { type BundleWitness, WitnessKind } from '../../../../gen/attestation/v1/bundle_pb.js';
import { printablePointerStep } from '../../../protocol/json-pointer.js';
import { EVM_DETAIL_MEMBERS } from '../../evm/evidence.js';
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
  if (!agrees(witness, expectedDetail)) return detailMismatch(evidence);
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

/** The result for evidence that only a newer verifier, or newer trust roots, can check: it does not count. */
export function uncheckable({ witness }: Evidence, code: string, message: string): Finding {
  return { check: notChecked(`witness.${code}`, `${witness.name}: ${message}`) };
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

/** The members of `detail` of each kind of witness. */
const DETAIL: ReadonlyMap<WitnessKind, readonly string[]> = new Map([
  [WitnessKind.TRANSPARENCY_LOG, ['log_index']],
  [WitnessKind.LOG_WITNESS, ['cosigned_at']],
  [WitnessKind.RFC3161, ['policy_oid', 'serial', 'gen_time', 'nonce']],
  [WitnessKind.OPENTIMESTAMPS, ['status', 'bitcoin_height', 'bitcoin_merkle_root', 'bitcoin_header']],
  [WitnessKind.EVM, EVM_DETAIL_MEMBERS],
]);

/** Whether `detail`, which proves nothing, has no known member that the evidence does not confirm. */
export function agrees({ kind, detail }: BundleWitness, expected: JsonObject): boolean {
  const confirmed = new Map(Object.entries(expected));
  const known = Object.entries(detail ?? {}).filter(([member]) => DETAIL.get(kind)?.includes(member));
  return known.every(([member, value]) => confirmed.has(member) && confirmed.get(member) === value);
}

/** JSON pointers to the members of `detail` that this version does not know, of the witness at index `i`. */
export function unknownDetails({ kind, detail }: BundleWitness, i: number): string[] {
  const known = DETAIL.get(kind);
  const names = known === undefined ? [] : Object.keys(detail ?? {});
  return names
    .filter((name) => !known?.includes(name))
    .map((name) => `/witnesses/${i}/detail/${printablePointerStep(name)}`);
}
