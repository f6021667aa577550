import { create, type JsonObject } from '@bufbuild/protobuf';
import {
  type BatchCreateAttestationsResponse,
  BatchCreateAttestationsResponseSchema,
  ItemOutcome,
  type ItemResult as ItemResultMessage,
  ItemResultSchema,
} from '../../../../../gen/attestation/v1/attestations_pb.js';
import type { Environment } from '../../../../../gen/attestation/v1/environment_pb.js';
import { ErrorSchema } from '../../../../../gen/attestation/v1/errors_pb.js';
import { errorRules } from '../../../../protocol/error-rules.js';
import type { SerializedResponse } from '../../../core/call.js';
import type { ApiError } from '../../../core/errors.js';
import { compileSplicingWriter } from '../../../json/codec.js';
import { joinTemplate, makeTemplate, type TextTemplate } from '../../../json/template.js';
import type { Departure } from '../../../schema/problems.js';
import { metadataWarnings } from '../metadata.js';
import {
  type SubmissionView,
  submissionJson,
  submissionMessage,
  visibleErrors,
} from '../submissions/submission-message.js';
import { submissionText } from '../submissions/submission-template.js';

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

/** By templates it takes 1.3 µs, by messages 5.3. */
function resultText(result: ItemResult, environment: Environment, requestId: string): string {
  const { outcome, shown, departures } = result;
  if (shown === undefined) return writeResult(withoutSubmission(result, requestId), {});
  const warnings = metadataWarnings(shown.schema, visibleErrors(shown), departures);
  const submission =
    warnings.length === 0
      ? submissionText(shown, environment)
      : submissionJson(shown, environment, { warnings });
  return joinTemplate(templates[outcome], [submission]);
}

/** Results with a submission, by their outcomes. */
const templates = {
  [ItemOutcome.CREATED]: resultTemplate(ItemOutcome.CREATED),
  [ItemOutcome.REPLAYED]: resultTemplate(ItemOutcome.REPLAYED),
};

function resultTemplate(outcome: ItemOutcome): TextTemplate {
  return makeTemplate<string>(
    (submission) => writeResult(create(ItemResultSchema, { outcome }), { submission }),
    (submission) => [submission],
    ['{"sample":1}', '{"sample":2}'],
  );
}

function resultMessage(result: ItemResult, environment: Environment, requestId: string): ItemResultMessage {
  const message = withoutSubmission(result, requestId);
  const { shown, departures } = result;
  if (shown === undefined) return message;
  const warnings = metadataWarnings(shown.schema, visibleErrors(shown), departures);
  message.submission = submissionMessage(shown, environment, { warnings });
  return message;
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
