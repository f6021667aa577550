import type { JsonValue } from '@bufbuild/protobuf';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../../core/errors.js';
import { hasMoreValues } from '../../json/count-values.js';
import { invalidRequest } from '../../json/problems.js';
import { JsonSyntaxError, parseJson } from '../../json/strict-json.js';

/** JSON nested deeper than this is refused; it leaves room for metadata at its own bound. */
const MAX_JSON_DEPTH = 64;
/** Members of messages around the values of their Structs. */
const SPARE_VALUES = 1_000;

/**
 * The JSON of a request's body, in the form that every surface takes: `maxValues` are those that the Structs in it can
 * have. Throws `request.malformed_json` and `request.invalid`.
 */
export function readJson(body: Uint8Array, maxValues: number): JsonValue {
  if (hasMoreValues(body, maxValues + SPARE_VALUES)) throw tooManyValues(maxValues);
  try {
    return parseJson(body, { maxDepth: MAX_JSON_DEPTH });
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw new ApiError(ErrorCode.REQUEST_MALFORMED_JSON, `the body cannot be read: ${error.message}`);
  }
}

/** The refusal of a message with more values than its Structs can have. */
export function tooManyValues(maxValues: number): ApiError {
  return invalidRequest([{ path: '', message: `holds more than ${maxValues} values` }]);
}
