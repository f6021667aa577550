import type { ServerResponse } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { type DescMessage, type Message, toBinary, toJsonString } from '@bufbuild/protobuf';
import { compressedFlag, encodeEnvelope } from '@connectrpc/connect/protocol';
import { trailerFlag } from '@connectrpc/connect/protocol-grpc-web';
import { acceptsGzip, MIN_COMPRESSED_BYTES } from '../../core/http/gzip.js';
import type { NodeRequest, NodeResponse, RequestRecord } from '../socket/requests.js';
import { afterDeclaredBody, endInChunks, writeResponse } from '../socket/write-response.js';
import type { JsonOptions, MessageFormat } from './messages.js';

/** The parts of the response to a call. */
type Success = {
  record: RequestRecord;
  responseHeaders: ReadonlyMap<string, string>;
  format: MessageFormat;
  /** Whether the request's message was compressed, or could have been. */
  isGzip: boolean;
  /** Of the rate limits: a flat [name, value, …] list. */
  rateHeaders: readonly string[];
  jsonOptions: JsonOptions;
};

const OK = { 'grpc-status': '0' };
const OK_FRAME = encodeEnvelope(trailerFlag, Buffer.from('grpc-status: 0\r\n'));
const compress = promisify(gzip);

/** Serialises the response to a call in its format, compressed if it is long and the client accepts gzip. */
export async function successResponse(
  { record, responseHeaders, format, isGzip, rateHeaders, jsonOptions }: Success,
  desc: DescMessage,
  message: Message,
): Promise<RpcResponse> {
  const headers = ['content-type', format.contentType, 'x-request-id', record.requestId, ...rateHeaders];
  for (const [name, value] of responseHeaders) headers.push(name, value);
  const bytes = format.isJson
    ? Buffer.from(toJsonString(desc, message, jsonOptions))
    : toBinary(desc, message);
  if (bytes.length < MIN_COMPRESSED_BYTES || !isGzipAccepted(record, format, isGzip)) {
    return answer(format, headers, bytes, 0);
  }
  headers.push(format.encodingHeader, 'gzip');
  return answer(format, headers, await compress(bytes, { level: constants.Z_BEST_SPEED }), compressedFlag);
}

/** A client without an accept header accepts the compression of its request (gRPC's compression.md, Connect's likewise). */
function isGzipAccepted({ req }: RequestRecord, { acceptHeader }: MessageFormat, isGzip: boolean): boolean {
  return acceptsGzip(req.headers[acceptHeader] || (isGzip ? 'gzip' : undefined));
}

function answer(
  { protocol, isEnveloped }: MessageFormat,
  headers: string[],
  bytes: Uint8Array,
  flags: number,
): RpcResponse {
  if (!isEnveloped) return { status: 200, headers, body: bytes };
  if (protocol === 'grpc') return { status: 200, headers, body: encodeEnvelope(flags, bytes), trailers: OK };
  return { status: 200, headers, body: Buffer.concat([encodeEnvelope(flags, bytes), OK_FRAME]) };
}

/** A whole response to an RPC; `headers` alternate names and values. */
export type RpcResponse = {
  status: number;
  headers: string[];
  body?: Uint8Array;
  trailers?: Readonly<Record<string, string>>;
};

/**
 * Responds to a call whose body may be unread. On HTTP/2 the rest of it is discarded while the client sends it,
 * because gRPC clients report the reset of a stream that they still write to as the call's error; one of a declared length
 * before the response. Does nothing if the client has disconnected or a response was written.
 */
export function writeRpcResponse({ req, res }: RequestRecord, answer: RpcResponse): void {
  if (req.httpVersionMajor < 2) write(req, res, answer);
  else if (!res.writableEnded) afterDeclaredBody(req as Http2ServerRequest, () => write(req, res, answer));
}

function write(req: NodeRequest, nodeRes: NodeResponse, answer: RpcResponse): void {
  const { status, headers, body, trailers } = answer;
  // Both kinds of response have these methods, but TypeScript finds no common signature.
  const res = nodeRes as ServerResponse;
  if (res.destroyed || res.writableEnded) return;
  if (req.httpVersionMajor < 2 && trailers === undefined) {
    writeResponse(req, res, { status, headers, body, etag: undefined });
    return;
  }
  for (let i = 0; i < headers.length; i += 2) res.setHeader(headers[i] as string, headers[i + 1] as string);
  if (body !== undefined && trailers === undefined) res.setHeader('content-length', body.byteLength);
  if (!req.complete) req.resume();
  if (trailers !== undefined) res.addTrailers(trailers);
  res.writeHead(status);
  endInChunks(res, body);
}
