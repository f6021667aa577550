import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { jsonPointer } from '../../protocol/json-pointer.js';
import { MAX_PROBLEMS, type Problem } from '../../protocol/problem.js';
import { ApiError } from '../core/errors.js';

/** The state of reading a request: its current path and the problems so far. Owned by one request. */
export type Reading = { readonly path: (string | number)[]; readonly problems: Problems };

/** Problems in the order of detection; `more`: number of problems that are not listed. */
type Problems = Problem[] & { more?: number };

/** A reading at the root. */
export function startReading(): Reading {
  return { path: [], problems: [] };
}

/** Reports a problem at the reading's path. Returns undefined, which no reader returns for a value. */
export function report(reading: Reading, message: string): undefined {
  if (reading.problems.length < MAX_PROBLEMS) {
    reading.problems.push({ path: jsonPointer(reading.path), message });
  } else {
    reading.problems.more = (reading.problems.more ?? 0) + 1;
  }
}

/** Reports a problem of the member `name` at the reading's path. */
export function reportAt(reading: Reading, name: string, message: string): undefined {
  reading.path.push(name);
  report(reading, message);
  reading.path.pop();
}

/** `request.invalid` with the listed problems in `details.errors`; throws if there are none. */
export function invalidRequest(problems: readonly Problem[] & { more?: number }): ApiError {
  const [first] = problems;
  if (first === undefined) throw new Error('a request without problems is not invalid');
  const total = problems.length + (problems.more ?? 0);
  const more = total > 1 ? ` (and ${total - 1} more, see details.errors)` : '';
  const subject = first.path === '' ? 'the request' : first.path;
  return new ApiError(ErrorCode.REQUEST_INVALID, `${subject} ${first.message}${more}`, {
    errors: problems.map(({ path, message }) => ({ path, message })),
    total,
  });
}
