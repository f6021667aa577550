/** The catalogue of error codes in errors.proto. */
import { getOption } from '@bufbuild/protobuf';
import { type ErrorRules, error } from '../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode, ErrorCodeSchema } from '../../gen/attestation/v1/errors_pb.js';

const RULES: ReadonlyMap<ErrorCode, ErrorRules> = new Map(
  ErrorCodeSchema.values
    .filter(({ number }) => number !== ErrorCode.UNSPECIFIED)
    .map((value) => [value.number, getOption(value, error)]),
);

const CODES: ReadonlyMap<string, ErrorCode> = new Map([...RULES].map(([number, { code }]) => [code, number]));

/** Returns the rules of a code in errors.proto: dotted code, HTTP status, gRPC code, summary. */
export function errorRules(code: ErrorCode): ErrorRules {
  const rules = RULES.get(code);
  if (rules === undefined) throw new Error(`error code ${code} has no rules in errors.proto`);
  return rules;
}

/** Returns the error code with this dotted form; undefined if there is none. */
export function findErrorCode(dotted: string): ErrorCode | undefined {
  return CODES.get(dotted);
}
