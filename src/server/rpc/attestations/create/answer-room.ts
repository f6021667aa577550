import { getOption } from '@bufbuild/protobuf';
import { max_bytes as maxBytes } from '../../../../../gen/attestation/options/v1/options_pb.js';
import {
  BatchCreateAttestationsRequestSchema,
  ItemOutcome,
} from '../../../../../gen/attestation/v1/attestations_pb.js';
import { ApiError, unavailable } from '../../../core/errors.js';
import { type SubmissionView, visibleErrors } from '../submissions/submission-message.js';
import type { CheckedItem } from './batch-checks.js';
import type { ItemResult } from './batch-response.js';
import { departuresOf } from './new-submission.js';

/**
 * Bytes that the answer to a batch has left for more than was sent. With both, the metadata of a request of 3 MiB, and what
 * else a thousand results have, it fits the 4 MiB that gRPC clients take by default.
 */
export type AnswerRoom = {
  /** For metadata of replayed submissions that have been corrected. */
  metadata: number;
  /** For the problems of metadata. */
  problems: number;
  /** For departures of metadata that are accepted: what the request has left of its greatest size. */
  departures: number;
};

const ROOM = 128 * 1024;
const RETRY_SECONDS = 1;
const MAX_SENT = getOption(BatchCreateAttestationsRequestSchema.field.items, maxBytes);
/** What a warning has beside what it says of its departure. */
const WARNING_BYTES = 256;

/** The room of an answer that has no results. `bytes`: the sizes of the request's items. */
export function answerRoom(bytes: readonly number[]): AnswerRoom {
  const sent = bytes.reduce((sum, one) => sum + one, 0);
  return { metadata: ROOM, problems: ROOM, departures: Math.max(0, MAX_SENT - sent) };
}

/** The result of an item whose submission is new. */
export function created({ submission }: Pick<CheckedItem, 'submission'>, shown: SubmissionView): ItemResult {
  return { outcome: ItemOutcome.CREATED, shown, departures: submission.departures };
}

/** The result of an item whose submission exists: its submission, or an error if the answer has no room for it. */
export function replayed(
  room: AnswerRoom,
  { submission }: Pick<CheckedItem, 'submission'>,
  shown: SubmissionView,
): ItemResult {
  const sent = Buffer.byteLength(submission.metadata);
  const shownBytes = bytesOf(shown.metadata) + bytesOf(shown.attestedMetadata);
  room.metadata -= Math.max(0, shownBytes - sent);
  if (room.metadata >= 0)
    return { outcome: ItemOutcome.REPLAYED, shown, departures: departuresOf(shown, submission) };
  return {
    error: unavailable(
      'the answer has no room for this submission; send the item again in another batch',
      RETRY_SECONDS,
    ),
  };
}

/**
 * Results of a batch with as many problems of metadata, and departures that are accepted, as the answer has room for; after
 * that with the first problem of each error.
 */
export function fitProblems(room: AnswerRoom, results: readonly ItemResult[]): ItemResult[] {
  return results.map((result) => {
    room.problems -= problemBytes(result);
    const fitting = room.problems >= 0 ? result : withoutProblems(result);
    if (fitting.departures === undefined || fitting.departures.length === 0) return fitting;
    room.departures -= jsonBytes(fitting.departures) + fitting.departures.length * WARNING_BYTES;
    return room.departures >= 0 ? fitting : { ...fitting, departures: [] };
  });
}

function bytesOf(text: string | null): number {
  return text === null ? 0 : Buffer.byteLength(text);
}

/** Those of a submission are in its answer twice: the warning has them as well. */
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
