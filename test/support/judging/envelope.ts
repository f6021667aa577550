/** Errors as they have to be on the wire, by the error catalogue. */

import type { JsonObject } from '@bufbuild/protobuf';
import type { Test } from 'tap';
import { ErrorCode, ErrorCodeSchema } from '../../../gen/attestation/v1/errors_pb.js';
import { errorRules } from '../../../src/protocol/error-rules.js';
import { CONCISE_PROBLEM } from '../calling/rest-error.js';
import type { Outcome } from '../calling/surfaces.js';

/** What is looked at of an answer by REST. */
export type ErrorAnswer = { status: number; headers: Record<string, string>; json: JsonObject };

const MEMBERS = ['code', 'message', 'details', 'request_id'];

/** What the catalogue says, by dotted code. */
export const CATALOGUE = new Map(
  ErrorCodeSchema.values
    .filter(({ number }) => number !== ErrorCode.UNSPECIFIED)
    .map(({ number }) => [errorRules(number).code, errorRules(number)]),
);

/** Asserts that an answer by REST is this error with its documented status, envelope and headers. */
export function assertEnvelope(t: Test, code: string, { status, headers, json }: ErrorAnswer): void {
  const rules = CATALOGUE.get(code);
  const error = (json.error ?? {}) as JsonObject;
  t.strictSame(Object.keys(json), ['error'], code);
  t.strictSame(Object.keys(error), MEMBERS, `${code}: the members of its envelope`);
  t.equal(error.code, code);
  t.equal(status, rules?.httpStatus, `${code}: its status`);
  t.match(error.message, /\S/, code);
  t.match(error.request_id, /^req_[0-7][0-9A-HJKMNP-TV-Z]{25}$/, code);
  t.equal(headers['x-request-id'], error.request_id, code);
  t.ok(['application/json', CONCISE_PROBLEM].includes(headers['content-type'] ?? ''), code);
  assertDetails(t, code, error.details as JsonObject);
  for (const name of rules?.headers ?? []) t.match(headers[name], /./, `${code}: with ${name}`);
}

/** Asserts that what came of a call by Connect or gRPC is this error with its documented status. */
export function assertStatus(t: Test, code: string, name: string, outcome: Outcome): void {
  const rules = CATALOGUE.get(code);
  t.equal(outcome.code, code, name);
  t.equal(outcome.grpcCode, rules?.grpcCode, `${code} by ${name}: its status`);
  t.match(outcome.requestId, /^req_/, `${code} by ${name}`);
  t.equal(outcome.headers['x-request-id'], outcome.requestId, `${code} by ${name}`);
  assertDetails(t, code, outcome.details);
  for (const header of rules?.headers ?? []) t.match(outcome.headers[header], /./, `${code} by ${name}`);
}

/** Codes have details, or none, as the catalogue says. */
function assertDetails(t: Test, code: string, details: JsonObject): void {
  const wanted = CATALOGUE.get(code)?.details ?? '';
  t.equal(Object.keys(details).length > 0, wanted !== '', `${code}: its details are ${wanted || 'none'}`);
}
