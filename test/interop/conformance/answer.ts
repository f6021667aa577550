/** What the suite's requests ask for: a response or an error with headers and trailers of their choice. */
import { setTimeout as delay } from 'node:timers/promises';
import { create, type DescMessage, type Message } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { type Code, ConnectError } from '@connectrpc/connect';
import { encodeEnvelope } from '@connectrpc/connect/protocol';
import { trailerFlag, trailerSerialize } from '@connectrpc/connect/protocol-grpc-web';
import type { Call } from '../../../src/server/core/call.js';
import { DEFAULT_LIMITS } from '../../../src/server/http/socket/limits.js';
import type { NodeResponse, RequestRecord } from '../../../src/server/http/socket/requests.js';
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
 * The handler of every method: returns or throws what a request asks for. No handler of the service sends trailers, so
 * these are added to the response here.
 */
export async function answerCase(
  schema: Schema,
  record: RequestRecord,
  call: Call,
  request: Message,
): Promise<Message> {
  const definition = (request as UnaryRequest).responseDefinition ?? NOTHING;
  const { response, responseDelayMs } = definition;
  const headers = flat(definition.responseHeaders);
  const trailers = flat(definition.responseTrailers);
  if (responseDelayMs > 0) await delay(responseDelayMs);
  for (const [name, value] of headers) call.responseHeaders.set(name, value);
  if (response.case === 'error') throw failure(schema, record, call, request, response.value, trailers);
  addTrailers(record, call, trailers);
  const data = response.case === 'responseData' ? response.value : new Uint8Array();
  const { input, output } = call.method;
  return create(output, { payload: { data, requestInfo: infoOf(record, anyPack(input, request)) } });
}

function addTrailers({ protocol, res }: RequestRecord, call: Call, trailers: readonly [string, string][]) {
  if (protocol === 'connect') {
    for (const [name, value] of trailers) call.responseHeaders.set(`trailer-${name}`, value);
  } else if (protocol === 'grpc') (res as Ending).addTrailers(Object.fromEntries(trailers));
  else endWithTrailers(res as Ending, trailers);
}

type Ending = Extract<NodeResponse, { shouldKeepAlive: boolean }>;

/** On gRPC-Web trailers are the last frame of the body. */
function endWithTrailers(res: Ending, trailers: readonly [string, string][]): void {
  const frame = (headers: Headers) => Buffer.from(encodeEnvelope(trailerFlag, trailerSerialize(headers)));
  const plain = frame(new Headers({ 'grpc-status': '0' }));
  const all = frame(new Headers([...trailers, ['grpc-status', '0']]));
  const setHeader = res.setHeader.bind(res);
  const writeHead = res.writeHead.bind(res) as (status: number, headers?: string[]) => unknown;
  const end = res.end.bind(res) as (body: Uint8Array) => unknown;
  const longer = (name: string, value: unknown) =>
    name === 'content-length' ? String(Number(value) + all.length - plain.length) : value;
  res.setHeader = ((name: string, value: string) => setHeader(name, longer(name, value) as string)) as never;
  res.writeHead = ((status: number, headers?: string[]) =>
    writeHead(
      status,
      headers?.map((value, i) => (i % 2 === 0 ? value : (longer(headers[i - 1] ?? '', value) as string))),
    )) as never;
  res.end = ((body: Uint8Array) => end(Buffer.concat([body.subarray(0, -plain.length), all]))) as never;
}

function failure(
  schema: Schema,
  record: RequestRecord,
  call: Call,
  request: Message,
  { code, message = '', details }: ErrorDefinition,
  trailers: readonly [string, string][],
): ConnectError {
  const desc = schema.message('ConformancePayload.RequestInfo');
  const info = create(desc, infoOf(record, anyPack(call.method.input, request)));
  const isConnect = record.protocol === 'connect';
  const metadata = new Headers(
    trailers.map(([name, value]) => [isConnect ? `trailer-${name}` : name, value]),
  );
  const all = [...details, info].map((value) => ({ desc: desc as DescMessage, value }));
  return new ConnectError(message, code, metadata, all);
}

/** `ConformancePayload.RequestInfo`. */
function infoOf({ req, protocol }: RequestRecord, request: object): Record<string, unknown> {
  const query = req.method === 'GET' ? [...new URL(req.url ?? '', 'http://localhost').searchParams] : [];
  return {
    requestHeaders: Object.entries(req.headers)
      .filter(([name]) => !name.startsWith(':'))
      .map(([name, value]) => ({ name, value: [value].flat().map(String) })),
    timeoutMs: timeoutOf(req.headers, protocol),
    requests: [request],
    connectGetInfo:
      query.length === 0
        ? undefined
        : { queryParams: query.map(([name, value]) => ({ name, value: [value] })) },
  };
}

const UNIT_MS = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 0.001, n: 0.000_001 };

function timeoutOf(headers: RequestRecord['req']['headers'], protocol: string): bigint | undefined {
  if (protocol === 'connect') {
    const value = headers['connect-timeout-ms'];
    // The server gives a GET without a deadline its own.
    const isOwn = value === undefined || value === String(DEFAULT_LIMITS.responseTimeoutMs);
    return isOwn ? undefined : BigInt(String(value));
  }
  const [, digits, unit] = /^(\d+)([HMSmun])$/.exec(String(headers['grpc-timeout'])) ?? [];
  if (digits === undefined) return undefined;
  return BigInt(Math.round(Number(digits) * UNIT_MS[unit as keyof typeof UNIT_MS]));
}

function flat(headers: readonly Header[]): [string, string][] {
  return headers.map(({ name, value }) => [name.toLowerCase(), value.join(', ')]);
}
