import {
  create,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type Message,
  type MessageInitShape,
} from '@bufbuild/protobuf';
import { type Code, ConnectError } from '@connectrpc/connect';
import { ErrorCode, ErrorCodeSchema, ErrorDetailSchema } from '../../../../gen/attestation/v1/errors_pb.js';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from '../../../../gen/google/rpc/error_details_pb.js';
import { errorRules } from '../../../protocol/error-rules.js';
import { ApiError, deadlineExceeded, internalError } from '../../core/errors.js';
import type { Logger } from '../../core/logger.js';
import { invalidRequest } from '../../json/problems.js';
import type { RequestRecord } from '../socket/requests.js';

/** The header of request ids. */
const ID = 'x-request-id';

/**
 * The error of Connect's library for an error: the gRPC status of its code, its details, and its headers as metadata.
 */
export function toConnectError(error: ApiError, requestId: string): ConnectError {
  const metadata = { ...error.headers, [ID]: requestId };
  const details = errorDetails(error, requestId).map(({ desc, message: value }) => ({ desc, value }));
  return new ConnectError(boundMessage(error.message), errorRules(error.code).grpcCode, metadata, details);
}

/** The error of a request that breaks the protocol, with the status that gRPC's documents give it, and no details. */
export function protocolError(message: string, code: Code, headers?: Record<string, string>): ConnectError {
  return new ConnectError(message, code, headers);
}

/** The error of bytes that are no message. */
export function unreadable(reason: string): ApiError {
  return invalidRequest([{ path: '', message: `cannot be read: ${reason}` }]);
}

/**
 * Of `details` in bytes of JSON. All trailers of a gRPC answer have to fit 8 KiB, the least that clients take by
 * default, and details go in up to twice, in base64.
 */
const MAX_DETAILS_BYTES = 1_536;
const MAX_TEXT_CHARACTERS = 256;
const MAX_MESSAGE_CHARACTERS = 512;

/** A message of an error's details. */
type Detail = { desc: DescMessage; message: Message };

/**
 * What the status of a failed call carries on Connect and gRPC: our own `ErrorDetail` first, then the same in the
 * messages of google.rpc that generic clients understand. Long lists and texts are cut.
 */
function errorDetails(error: ApiError, requestId: string): Detail[] {
  const { code } = errorRules(error.code);
  const details = boundDetails(error.details);
  const reason = ErrorCodeSchema.value[error.code]?.name.slice(ErrorCodeSchema.sharedPrefix?.length) ?? '';
  return [
    detail(ErrorDetailSchema, { code, details, requestId }),
    detail(ErrorInfoSchema, { reason, domain: ErrorCodeSchema.file.proto.package }),
    ...retryInfo(error.headers['retry-after']),
    ...badRequest(error.code, details),
  ];
}

/** Cuts a message to the length that fits a header. */
function boundMessage(message: string): string {
  return cutText(message, MAX_MESSAGE_CHARACTERS);
}

function detail<D extends DescMessage>(desc: D, value: MessageInitShape<D>): Detail {
  return { desc, message: create(desc, value) };
}

function retryInfo(retryAfter: string | undefined): Detail[] {
  if (retryAfter === undefined) return [];
  return [detail(RetryInfoSchema, { retryDelay: { seconds: BigInt(retryAfter) } })];
}

/** The places that `request.invalid` lists, their JSON pointers as dotted paths. */
function badRequest(code: ErrorCode, { errors }: JsonObject): Detail[] {
  if (code !== ErrorCode.REQUEST_INVALID || !Array.isArray(errors)) return [];
  const fieldViolations = (errors as { path: string; message: string }[]).map(({ path, message }) => ({
    field: path.slice(1).replaceAll('/', '.'),
    description: message,
  }));
  return [detail(BadRequestSchema, { fieldViolations })];
}

function boundDetails(details: JsonObject): JsonObject {
  let bounded = details;
  for (let items = 64; items >= 1 && sizeOf(bounded) > MAX_DETAILS_BYTES; items /= 2) {
    bounded = cut(details, items) as JsonObject;
  }
  return bounded;
}

function sizeOf(value: JsonObject): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Cuts lists to `items` items and long texts to their maximum. */
function cut(value: JsonValue, items: number): JsonValue {
  if (typeof value === 'string') return cutText(value, MAX_TEXT_CHARACTERS);
  if (Array.isArray(value)) return value.slice(0, items).map((item) => cut(item, items));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, cut(member, items)]));
}

function cutText(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  return `${text.slice(0, maxCharacters - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/**
 * Maps the failure of a call to the error for its caller. An ApiError stays; if the caller has disconnected or the
 * deadline has passed it is `service.deadline_exceeded`; anything else is logged and becomes `service.internal`.
 */
export function asApiError(
  log: Logger,
  error: unknown,
  { call, requestId }: Pick<RequestRecord, 'call' | 'requestId'>,
): ApiError {
  if (error instanceof ApiError) return error;
  if (call?.signal().aborted) return deadlineExceeded(error);
  log.error({ err: error, request_id: requestId, rpc: call?.method.name }, 'a call failed');
  return internalError(requestId, error);
}
