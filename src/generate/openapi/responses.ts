import { STATUS_CODES } from 'node:http';
import type { DescFile, DescMessage, JsonObject } from '@bufbuild/protobuf';
import { Bucket } from '../../../gen/attestation/options/v1/options_pb.js';
import type { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { errorRules } from '../../protocol/error-rules.js';
import { CONCISE_PROBLEM_TYPE } from '../../server/core/http/concise-problem.js';
import { isHttpBody } from '../../server/http/rest/request.js';
import { type Components, refTo } from './components.js';
import { byStatus, errorCodes } from './error-codes.js';
import { type ErrorMessages, errorExampleRef, errorSchemaRef, pascal } from './error-schema.js';
import { findMessageExample } from './example.js';
import { headerRefs, RATE_HEADERS } from './headers.js';
import type { Operation } from './operation.js';
import { BINARY } from './scalar.js';
import { fieldSchema, messageRef } from './schema.js';

/** Statuses of responses to calls that were possibly not counted. */
const BEFORE_COUNTING: ReadonlySet<number> = new Set([401, 500, 503, 504]);

const PENDING = 'The answer is not ready: ask for `Location` after `Retry-After`.';
const UNCHANGED = 'The client has it as it is: `If-None-Match` names it.';

/** All responses of an operation by status: success, 304 if it has entity tags, each error. */
export function responses(components: Components, operation: Operation, errors: ErrorMessages): JsonObject {
  const { rules } = operation;
  const success = { [rules.successStatus || 200]: successResponse(components, operation) };
  const unchanged: JsonObject = {};
  if (hasEntityTag(operation)) {
    unchanged[304] = { description: UNCHANGED, headers: headerRefs(alwaysHeaders(operation)) };
  }
  const failures = [...byStatus(errorCodes(operation))].map(([status, codes]): [number, JsonObject] => [
    status,
    errorResponse(components, errors, codes, {
      isCounted: rules.bucket !== Bucket.UNSPECIFIED,
      isBeforeCounting: BEFORE_COUNTING.has(status),
      isConcise: rules.conciseProblems,
    }),
  ]);
  return { ...success, ...pendingResponses(operation), ...unchanged, ...Object.fromEntries(failures) };
}

function pendingResponses(operation: Operation): JsonObject {
  const headers = headerRefs([...alwaysHeaders(operation), 'retry-after']);
  return Object.fromEntries(
    operation.rules.pendingStatuses.map((status) => [status, { description: PENDING, headers }]),
  );
}

function successResponse(components: Components, operation: Operation): JsonObject {
  const { rules, method, binding } = operation;
  const status = rules.successStatus || 200;
  const replayed = rules.idempotentByKey ? ['idempotent-replayed'] : [];
  const response = {
    description: STATUS_CODES[status] ?? 'Success',
    headers: headerRefs([...alwaysHeaders(operation), ...replayed]),
  };
  if (status === 204) return response;
  const field = method.output.fields.find(({ name }) => name === binding.responseBody);
  const type = field === undefined ? method.output : field.message;
  if (type !== undefined && isHttpBody(type))
    return { ...response, content: rawContent(components, operation) };
  if (field !== undefined) {
    return { ...response, content: jsonContent(fieldSchema(components, field, 'response')) };
  }
  const schema = messageRef(components, method.output, 'response');
  return {
    ...response,
    content: jsonContent(schema, findMessageExample(components, method.output, 'response')),
  };
}

function alwaysHeaders(operation: Operation): string[] {
  const { rules } = operation;
  return [
    'x-request-id',
    ...(rules.bucket === Bucket.UNSPECIFIED ? [] : RATE_HEADERS),
    'cache-control',
    ...(hasEntityTag(operation) ? ['etag'] : []),
    ...(rules.attachment ? ['content-disposition'] : []),
    ...(rules.pendingStatuses.length > 0 ? ['location'] : []),
  ];
}

function rawContent(components: Components, { rules, index, method }: Operation): JsonObject {
  const mediaType = rules.mediaTypes[index] ?? rules.mediaTypes[0] ?? 'application/octet-stream';
  const typeName = rules.bodyTypes[index] ?? '';
  if (typeName !== '') {
    return {
      [mediaType]: { schema: messageRef(components, getMessage(method.parent.file, typeName), 'response') },
    };
  }
  if (/^application\/(?:.*\+)?json/.test(mediaType)) return { [mediaType]: { schema: { type: 'object' } } };
  return { [mediaType]: { schema: mediaType.startsWith('text/') ? { type: 'string' } : BINARY } };
}

function getMessage(file: DescFile, typeName: string): DescMessage {
  const messages = [file, ...file.dependencies].flatMap((known) => known.messages);
  const found = messages.find((message) => message.typeName === typeName);
  if (found === undefined) throw new Error(`${file.name} knows no message ${typeName}`);
  return found;
}

function jsonContent(schema: JsonObject, example?: JsonObject | undefined): JsonObject {
  return { 'application/json': { schema, ...(example === undefined ? {} : { example }) } };
}

/** The response of one status, shared by all operations with the same error codes that are counted alike. */
function errorResponse(
  components: Components,
  errors: ErrorMessages,
  codes: readonly ErrorCode[],
  { isCounted, isBeforeCounting, isConcise }: Record<'isCounted' | 'isBeforeCounting' | 'isConcise', boolean>,
): JsonObject {
  const rules = codes.map(errorRules);
  const suffix = isCounted || isBeforeCounting ? '' : 'Uncounted';
  const name = (isConcise ? 'Concise' : '') + rules.map(({ code }) => pascal(code)).join('Or') + suffix;
  if (components.responses.has(name)) return refTo('responses', name);
  const headers = [
    'x-request-id',
    ...(isCounted && !isBeforeCounting ? RATE_HEADERS : []),
    ...new Set(rules.flatMap((rule) => rule.headers)),
  ];
  components.responses.set(name, {
    description: rules.map(({ code, summary }) => `\`${code}\`: ${summary}`).join('\n\n'),
    headers: headerRefs(headers),
    content: isConcise
      ? { [CONCISE_PROBLEM_TYPE]: { schema: BINARY } }
      : { 'application/json': envelopeContent(components, errors, codes) },
  });
  return refTo('responses', name);
}

function envelopeContent(
  components: Components,
  errors: ErrorMessages,
  codes: readonly ErrorCode[],
): JsonObject {
  const schemas = codes.map((code) => errorSchemaRef(components, errors, code));
  const [only] = schemas;
  const schema = only !== undefined && schemas.length === 1 ? only : { anyOf: schemas };
  const examples = codes.map((code) => [errorRules(code).code, errorExampleRef(components, errors, code)]);
  return { schema, examples: Object.fromEntries(examples) };
}

function hasEntityTag({ rules, httpMethod }: Operation): boolean {
  return rules.etag && httpMethod === 'GET';
}

/** Message types of these operations' responses. */
export function outputsOf(operations: readonly Operation[]): DescMessage[] {
  return operations.map(({ method }) => method.output).filter((output) => !isHttpBody(output));
}
