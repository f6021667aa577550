import { create, type JsonObject } from '@bufbuild/protobuf';
import {
  type BatchCreateAttestationsResponse,
  BatchCreateAttestationsResponseSchema,
  ItemOutcome,
  type ItemResult as ItemResultMessage,
  ItemResultSchema,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { ErrorSchema } from '../../../../gen/attestation/v1/errors_pb.js';
import { errorRules } from '../../../protocol/error-rules.js';
import type { SerializedResponse } from '../../core/call.js';
import type { ApiError } from '../../core/errors.js';
import { compileSplicingWriter } from '../../json/codec.js';
import type { Departure } from '../../schema/problems.js';
import { metadataWarnings } from '../metadata.js';
import {
  type SubmissionView,
  submissionJson,
  submissionMessage,
  visibleErrors,
} from '../submissions/submission-message.js';

/** The result of an item: its submission, or the error that it would have got alone. */
export type ItemResult =
  | {
      outcome: ItemOutcome.CREATED | ItemOutcome.REPLAYED;
      shown: SubmissionView;
      departures: readonly Departure[];
      error?: never;
    }
  | { error: ApiError; outcome?: never; shown?: never; departures?: never };

const writeResponse = compileSplicingWriter(BatchCreateAttestationsResponseSchema);
const writeResult = compileSplicingWriter(ItemResultSchema);

/** The response to a batch, serialised when it is sent. */
export function batchResponse(
  results: readonly ItemResult[],
  environment: Environment,
  requestId: string,
): SerializedResponse<BatchCreateAttestationsResponse> {
  const count = (wanted: ItemOutcome | undefined) =>
    results.filter(({ outcome }) => outcome === wanted).length;
  const response = create(BatchCreateAttestationsResponseSchema, {
    created: count(ItemOutcome.CREATED),
    replayed: count(ItemOutcome.REPLAYED),
    failed: count(undefined),
  });
  const listText = () => {
    let items = '';
    for (const result of results) {
      items += `${items === '' ? '' : ','}${resultText(result, environment, requestId)}`;
    }
    return `[${items}]`;
  };
  return {
    json: () => ({ bytes: Buffer.from(writeResponse(response, { results: listText() })) }),
    message: () => {
      response.results = results.map((result) => resultMessage(result, environment, requestId));
      return response;
    },
  };
}

function resultText(result: ItemResult, environment: Environment, requestId: string): string {
  const { shown, departures } = result;
  const message = withoutSubmission(result, requestId);
  if (shown === undefined) return writeResult(message, {});
  const warnings = metadataWarnings(shown.schema, visibleErrors(shown), departures);
  return writeResult(message, { submission: submissionJson(inBatch(shown), environment, { warnings }) });
}

function resultMessage(result: ItemResult, environment: Environment, requestId: string): ItemResultMessage {
  const message = withoutSubmission(result, requestId);
  const { shown, departures } = result;
  if (shown === undefined) return message;
  const warnings = metadataWarnings(shown.schema, visibleErrors(shown), departures);
  message.submission = submissionMessage(inBatch(shown), environment, { warnings });
  return message;
}

/** Without the identity, which all submissions of a call have: a thousand would not fit the response. */
function inBatch(shown: SubmissionView): SubmissionView {
  if (shown.statement === null) return shown;
  return { ...shown, statement: { ...shown.statement, identity: undefined } };
}

function withoutSubmission({ outcome, error }: ItemResult, requestId: string): ItemResultMessage {
  if (error === undefined) return create(ItemResultSchema, { outcome });
  const retryAfter = error.headers['retry-after'];
  return create(ItemResultSchema, {
    outcome: ItemOutcome.FAILED,
    error: create(ErrorSchema, {
      code: errorRules(error.code).code,
      message: error.message,
      details: error.details as JsonObject,
      requestId,
    }),
    ...(retryAfter !== undefined && { retryAfter: Number(retryAfter) }),
  });
}
