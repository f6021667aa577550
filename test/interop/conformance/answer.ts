/** What the suite's requests ask for: an answer or an error with headers and trailers of their choice. */
import { setTimeout as delay } from 'node:timers/promises';
import { create, type DescMessage, type JsonObject, type Message, toJson } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import type { Code } from '@connectrpc/connect';
import type { Call } from '../../../src/server/core/call.js';
import type { RpcStatus } from '../../../src/server/http/connect/connect-error.js';
import { webTrailers } from '../../../src/server/http/connect/grpc-status.js';
import {
  findFormat,
  findQueryFormat,
  type MessageFormat,
} from '../../../src/server/http/connect/messages.js';
import { statusResponse } from '../../../src/server/http/connect/refusal.js';
import {
  type RpcResponse,
  successResponse,
  writeRpcResponse,
} from '../../../src/server/http/connect/response.js';
import { readTimeout } from '../../../src/server/http/connect/rpc-deadline.js';
import { type RequestRecord, whenClosed } from '../../../src/server/http/socket/requests.js';
import type { Schema } from './schema.js';

type Header = { name: string; value: string[] };
type ErrorDefinition = { code: Code; message?: string; details: Message[] };
/** `UnaryResponseDefinition` of the suite's service.proto. */
type Definition = {
  responseHeaders: Header[];
  responseTrailers: Header[];
  responseDelayMs: number;
  response:
    | { case: 'responseData'; value: Uint8Array }
    | { case: 'error'; value: ErrorDefinition }
    | { case: undefined; value?: undefined };
};
type UnaryRequest = Message & { responseDefinition?: Definition };

const NOTHING: Definition = {
  responseHeaders: [],
  responseTrailers: [],
  responseDelayMs: 0,
  response: { case: undefined },
};

/**
 * Writes what a request asks for by the functions that write the service's own answers, and resolves once it is sent. No
 * handler of the service sends trailers, a repeated header or an error outside its catalogue, so these are added here.
 */
export async function answerCase(
  schema: Schema,
  record: RequestRecord,
  call: Call,
  request: Message,
): Promise<void> {
  const definition = (request as UnaryRequest).responseDefinition ?? NOTHING;
  const closed = new Promise<void>((resolve) => whenClosed(record.res, resolve));
  if (definition.responseDelayMs > 0) await delay(definition.responseDelayMs);
  if (definition.response.case === 'error') {
    writeRpcResponse(record, failure(schema, record, call, request, definition.response.value, definition));
  } else writeRpcResponse(record, await success(schema, record, call, request, definition));
  await closed;
}

async function success(
  schema: Schema,
  record: RequestRecord,
  call: Call,
  request: Message,
  { response, responseHeaders, responseTrailers }: Definition,
): Promise<RpcResponse> {
  const format = formatOf(record);
  const find = format.isJson ? schema.jsonMessage : schema.message;
  const data = response.case === 'responseData' ? response.value : new Uint8Array();
  const requestInfo = infoOf(record, format.isJson ? jsonAny(call, request) : packed(call, request));
  const desc = find(call.method.output.name);
  const message = create(desc, { payload: { data, requestInfo } });
  const answer = await successResponse(
    {
      record,
      responseHeaders: new Map(Object.entries(joined(responseHeaders))),
      format,
      isGzip: false,
      rateHeaders: [],
    },
    desc,
    message,
  );
  return withTrailers(answer, format, joined(responseTrailers));
}

function withTrailers(
  answer: RpcResponse,
  { protocol }: MessageFormat,
  trailers: Record<string, string>,
): RpcResponse {
  if (protocol === 'grpc') return { ...answer, trailers: { ...answer.trailers, ...trailers } };
  if (protocol === 'connect') return { ...answer, headers: [...answer.headers, ...asConnect(trailers)] };
  const plainEnd = webTrailers(undefined).length;
  const message = answer.body?.subarray(0, -plainEnd) ?? new Uint8Array();
  const end = webTrailers({ code: 0 as Code, message: '', details: [], metadata: trailers });
  return { ...answer, body: Buffer.concat([message, end]) };
}

/** Trailers of unary calls on Connect. */
function asConnect(trailers: Record<string, string>): string[] {
  return Object.entries(trailers).flatMap(([name, value]) => [`trailer-${name}`, value]);
}

function failure(
  schema: Schema,
  record: RequestRecord,
  call: Call,
  request: Message,
  { code, message = '', details }: ErrorDefinition,
  { responseHeaders, responseTrailers }: Definition,
): RpcResponse {
  const desc = schema.message('ConformancePayload.RequestInfo');
  const info = create(desc, infoOf(record, packed(call, request)));
  const given = details.map((value) => ({ desc: desc as DescMessage, message: value }));
  const isConnect = record.protocol === 'connect';
  const trailers = joined(responseTrailers);
  const status: RpcStatus = {
    code,
    message,
    details: [...given, { desc, message: info }],
    metadata: isConnect ? {} : trailers,
  };
  const answer = statusResponse(record, status);
  const headers = Object.entries(joined(responseHeaders)).flat();
  const more = isConnect ? asConnect(trailers) : [];
  return { ...answer, headers: [...answer.headers, ...headers, ...more] };
}

function formatOf({ req }: RequestRecord): MessageFormat {
  const format =
    req.method === 'GET'
      ? findQueryFormat(queryOf(req.url).get('encoding'))
      : findFormat(req.headers['content-type']);
  if (format === undefined) throw new Error('the call has no format');
  return format;
}

function queryOf(url = ''): URLSearchParams {
  return new URL(url, 'http://localhost').searchParams;
}

/** `ConformancePayload.RequestInfo`. */
function infoOf({ req, protocol }: RequestRecord, request: object): Record<string, unknown> {
  const timeout = readTimeout(req.headers, protocol === 'connect');
  const query = req.method === 'GET' ? [...queryOf(req.url)] : [];
  return {
    requestHeaders: Object.entries(req.headers)
      .filter(([name]) => !name.startsWith(':'))
      .map(([name, value]) => ({ name, value: [value].flat().map(String) })),
    timeoutMs: typeof timeout === 'number' ? BigInt(Math.round(timeout)) : undefined,
    requests: [request],
    connectGetInfo:
      query.length === 0
        ? undefined
        : { queryParams: query.map(([name, value]) => ({ name, value: [value] })) },
  };
}

function packed({ method }: Call, request: Message): Message {
  return anyPack(method.input, request);
}

function jsonAny({ method: { input } }: Call, request: Message): JsonObject {
  return { '@type': `type.googleapis.com/${input.typeName}`, ...(toJson(input, request) as JsonObject) };
}

function joined(headers: readonly Header[]): Record<string, string> {
  return Object.fromEntries(headers.map(({ name, value }) => [name.toLowerCase(), value.join(', ')]));
}
