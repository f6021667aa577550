import { getOption } from '@bufbuild/protobuf';
import { max_bytes as maxBytes } from '../../../../gen/attestation/options/v1/options_pb.js';
import {
  BatchCreateAttestationsRequestSchema,
  ItemOutcome,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { ApiError, unavailable } from '../../core/errors.js';
import { type SubmissionView, visibleErrors } from '../submissions/submission-message.js';
import type { CheckedItem } from './batch-checks.js';
import type { ItemResult } from './batch-response.js';
import { departuresOf } from './new-submission.js';

/**
 * Bytes that the response to a batch may hold beyond what was sent. With these, the metadata of a request of 3 MiB, and
 * what else a thousand results have, it fits the 4 MiB that gRPC clients accept by default.
 */
export type ResponseBudget = {
  /** For metadata of replayed submissions that have been corrected. */
  metadata: number;
  /** For the problems of metadata. */
  problems: number;
  /** For departures of metadata that are accepted: the maximum size of a request less its size. */
  departures: number;
};

const ROOM = 128 * 1024;
const RETRY_SECONDS = 1;
const MAX_SENT = getOption(BatchCreateAttestationsRequestSchema.field.items, maxBytes);
/** Bytes of a warning beside its departure. */
const WARNING_BYTES = 256;

/** The budget of an empty response. `bytes`: the sizes of the request's items. */
export function responseBudget(bytes: readonly number[]): ResponseBudget {
  const sent = bytes.reduce((sum, one) => sum + one, 0);
  return { metadata: ROOM, problems: ROOM, departures: Math.max(0, MAX_SENT - sent) };
}

/** The result of an item whose submission is new. */
export function created({ submission }: Pick<CheckedItem, 'submission'>, shown: SubmissionView): ItemResult {
  return { outcome: ItemOutcome.CREATED, shown, departures: submission.departures };
}

/** The result of an item whose submission exists: its submission, or an error if that exceeds the budget. */
export function replayed(
  budget: ResponseBudget,
  { submission }: Pick<CheckedItem, 'submission'>,
  shown: SubmissionView,
): ItemResult {
  const sent = Buffer.byteLength(submission.metadata);
  const shownBytes = bytesOf(shown.metadata) + bytesOf(shown.attestedMetadata);
  budget.metadata -= Math.max(0, shownBytes - sent);
  if (budget.metadata >= 0)
    return { outcome: ItemOutcome.REPLAYED, shown, departures: departuresOf(shown, submission) };
  return {
    error: unavailable(
      'the answer has no room for this submission; send the item again in another batch',
      RETRY_SECONDS,
    ),
  };
}

/**
 * Cuts the results of a batch to the budget: once it is exceeded, to the first problem of an error, without accepted
 * departures.
 */
export function fitProblems(budget: ResponseBudget, results: readonly ItemResult[]): ItemResult[] {
  return results.map((result) => {
    budget.problems -= problemBytes(result);
    const fitting = budget.problems >= 0 ? result : withoutProblems(result);
    if (fitting.departures === undefined || fitting.departures.length === 0) return fitting;
    budget.departures -= jsonBytes(fitting.departures) + fitting.departures.length * WARNING_BYTES;
    return budget.departures >= 0 ? fitting : { ...fitting, departures: [] };
  });
}

function bytesOf(text: string | null): number {
  return text === null ? 0 : Buffer.byteLength(text);
}

/** The bytes of a result's problems. A submission's are in the response twice: in its warning as well. */
function problemBytes({ error, shown }: ItemResult): number {
  if (error !== undefined) return error.details.errors === undefined ? 0 : jsonBytes(error.details.errors);
  const errors = visibleErrors(shown);
  return errors.length === 0 ? 0 : 2 * jsonBytes(errors);
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function withoutProblems(result: ItemResult): ItemResult {
  const { error, shown } = result;
  if (error === undefined)
    return visibleErrors(shown).length === 0
      ? result
      : { ...result, shown: { ...shown, metadataErrors: [] } };
  const { code, message, details, headers } = error;
  if (!Array.isArray(details.errors)) return result;
  return { error: new ApiError(code, message, { ...details, errors: details.errors.slice(0, 1) }, headers) };
}
