import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { type DescMessage, type Message, toBinary, toJsonString } from '@bufbuild/protobuf';
import { acceptsGzip, MIN_COMPRESSED_BYTES } from '../../core/gzip.js';
import type { RequestRecord } from '../socket/requests.js';
import { COMPRESSED_FLAG, envelope } from './envelope.js';
import { grpcTrailers, webTrailers } from './grpc-status.js';
import type { MessageFormat } from './message-format.js';
import type { RpcResponse } from './write-rpc.js';

/** What the response to a call is made of. */
type Success = {
  record: RequestRecord;
  responseHeaders: ReadonlyMap<string, string>;
  format: MessageFormat;
  /** Whether the request's message was compressed, or could have been. */
  isGzip: boolean;
  /** Of the rate limits: a flat [name, value, …] list. */
  rateHeaders: readonly string[];
};

const OK = grpcTrailers(undefined);
const OK_FRAME = webTrailers(undefined);
const compress = promisify(gzip);

/** Serialises the response to a call in its format, compressed if it is long and the client accepts gzip. */
export async function successResponse(
  { record, responseHeaders, format, isGzip, rateHeaders }: Success,
  desc: DescMessage,
  message: Message,
): Promise<RpcResponse> {
  const headers = ['content-type', format.contentType, 'x-request-id', record.requestId, ...rateHeaders];
  for (const [name, value] of responseHeaders) headers.push(name, value);
  if (record.req.method === 'GET') allowNoReuse(record, headers);
  const bytes = format.isJson ? Buffer.from(toJsonString(desc, message)) : toBinary(desc, message);
  if (bytes.length < MIN_COMPRESSED_BYTES || !isGzipAccepted(record, format, isGzip)) {
    return answer(format, headers, bytes, 0);
  }
  headers.push(format.encodingHeader, 'gzip');
  return answer(format, headers, await compress(bytes, { level: constants.Z_BEST_SPEED }), COMPRESSED_FLAG);
}

/** A client that says nothing accepts what it has sent (gRPC's compression.md, Connect's likewise). */
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
  if (protocol === 'grpc') return { status: 200, headers, body: envelope(flags, bytes), trailers: OK };
  return { status: 200, headers, body: Buffer.concat([envelope(flags, bytes), OK_FRAME]) };
}

/** Lets a private cache keep the response to a Connect GET and revalidate it before each use. */
function allowNoReuse({ res }: RequestRecord, headers: string[]): void {
  const vary = res.getHeader('vary');
  headers.push('vary', vary === undefined ? 'accept-encoding' : `${vary}, accept-encoding`);
  headers.push('cache-control', 'private, no-cache');
}
