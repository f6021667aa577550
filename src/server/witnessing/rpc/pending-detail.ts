/** Requests that a witness has accepted, for a caller: operators see all of the state, others its public parts. */
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { WitnessKind } from '../../../../gen/attestation/v1/bundle_pb.js';
import type { WaitsOn } from '../clients/evm/poll.js';

const CALENDAR_FAILED = 'the request to the calendar failed';

const WAITING_TEXTS: Readonly<Record<WaitsOn, string>> = {
  execution: 'the transaction is to be executed',
  confirmations: 'the transaction waits for its confirmations',
  fees: 'the transaction waits for lower fees of the chain, or for a higher limit of the operator',
  funds: "the operator's account lacks funds",
  nonce: "another transaction of the operator's account comes first",
};

/** Public members: those of the transaction on the chain, and of its contract in the trust roots. */
const EVM_MEMBERS = ['chain_id', 'contract', 'method', 'account', 'nonce', 'transaction_hash'];

/**
 * The detail of a pending request as an operator sees it, or everybody: without lines of text, which may name hosts,
 * limits and answers that only the operator may know. The addresses of calendars are in the trust roots.
 */
export function pendingDetail(kind: number, detail: JsonObject, isForOperator: boolean): JsonObject {
  if (isForOperator) return detail;
  if (kind === WitnessKind.OPENTIMESTAMPS) return publicCalendars(detail);
  return kind === WitnessKind.EVM ? publicTransaction(detail) : {};
}

function publicCalendars({ calendars }: JsonObject): JsonObject {
  const known = Array.isArray(calendars) ? calendars.filter(isObject) : [];
  return {
    status: 'pending',
    calendars: known.map(({ url = '', status = '' }) => ({
      url,
      status,
      ...(status === 'failed' && { reason: CALENDAR_FAILED }),
    })),
  };
}

function publicTransaction(detail: JsonObject): JsonObject {
  const members = EVM_MEMBERS.flatMap((name) => {
    const value = detail[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  const { waits_on: waitsOn } = detail;
  const isKnown = typeof waitsOn === 'string' && Object.hasOwn(WAITING_TEXTS, waitsOn);
  return {
    ...Object.fromEntries(members),
    ...(isKnown && { waiting_for: WAITING_TEXTS[waitsOn as WaitsOn], waits_on: waitsOn }),
  };
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
