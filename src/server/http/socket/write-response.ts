import type { ServerResponse } from 'node:http';
import { constants, type Http2ServerRequest, type ServerHttp2Stream } from 'node:http2';
import type { JsonObject } from '@bufbuild/protobuf';
import type { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { errorRules } from '../../../protocol/error-rules.js';
import type { ApiError } from '../../core/errors.js';
import { bodyLength } from './bodies.js';
import type { NodeRequest, NodeResponse, RequestRecord } from './requests.js';

/** A whole response. */
export type HttpResponse = {
  status: number;
  /** A flat [name, value, …] list, names in lower case, without `etag` and `content-length`. */
  headers: string[];
  /** Undefined for statuses that have no body. */
  body: Uint8Array | undefined;
  /** The value of its header. */
  etag: string | undefined;
};

/** An unread request body of at most this many bytes is discarded, and connection or stream stay open. */
const MAX_SKIPPED_BYTES = 64 * 1024;
/** How much of a larger one is discarded on HTTP/1.1, and on both for how long, before connection or stream are closed. */
const LINGER_BYTES = 4 * 1024 * 1024;
const LINGER_MS = 2_000;
/**
 * Large bodies are written in chunks of this size, each after the last one was flushed: this shows whether the client
 * reads.
 */
const CHUNK_BYTES = 64 * 1024;

/** Writes a response, to HEAD without the body. Does nothing if the client has disconnected or one was written. */
export function writeResponse(req: NodeRequest, nodeRes: NodeResponse, answer: HttpResponse): void {
  const { status, headers, body, etag } = answer;
  // Both kinds of response have these methods, but TypeScript finds no common signature.
  const res = nodeRes as ServerResponse;
  if (res.destroyed || res.writableEnded) return;
  if (etag !== undefined) headers.push('etag', etag);
  if (body !== undefined) headers.push('content-length', String(body.byteLength));
  const sent = req.method === 'HEAD' ? undefined : body;
  if (!hasLargeUnreadBody(req)) {
    writeHead(req, res, status, headers);
    endInChunks(res, sent);
  } else if (req.httpVersionMajor < 2) {
    writeHead(req, res, status, [...headers, 'connection', 'close']);
    lingerThenEnd(req, res, sent);
  } else {
    lingerThenReset((req as Http2ServerRequest).stream);
    writeHead(req, res, status, headers);
    endInChunks(res, sent);
  }
}

/** A list of headers takes HTTP/1.1 half the time of an object. HTTP/2 takes such lists only since Node 20.20. */
function writeHead(req: NodeRequest, res: ServerResponse, status: number, headers: readonly string[]): void {
  if (req.httpVersionMajor < 2) {
    res.writeHead(status, headers as string[]);
    return;
  }
  setHeaders(res, headers);
  res.writeHead(status);
}

/** Sets headers of a response that is not written yet; `headers` is a flat [name, value, …] list. */
export function setHeaders(res: NodeResponse, headers: readonly string[]): void {
  for (let i = 0; i < headers.length; i += 2) res.setHeader(headers[i] as string, headers[i + 1] as string);
}

function hasLargeUnreadBody(req: NodeRequest): boolean {
  if (req.complete) return false;
  const length = bodyLength(req);
  return length === undefined || length > MAX_SKIPPED_BYTES;
}

/**
 * Sends the whole response, then discards what the client still sends before the connection closes: closing it with
 * unread data would reset it, and the client might lose the response (RFC 9112, 9.6).
 */
function lingerThenEnd(req: NodeRequest, res: ServerResponse, body: Uint8Array | undefined): void {
  if (body === undefined) res.flushHeaders();
  else res.write(body);
  let left = LINGER_BYTES;
  const timer = setTimeout(() => res.end(), LINGER_MS).unref();
  const end = () => {
    clearTimeout(timer);
    res.end();
  };
  req.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) end();
  });
  req.once('end', end);
  req.once('close', end);
  req.resume();
}

/**
 * Discards what the client sends after the response, before it is told that the rest is not needed (RFC 9113, 8.1): frames
 * that are on their way are judged as those of an open stream, and a request that ends soon is not reset.
 */
function lingerThenReset(stream: ServerHttp2Stream): void {
  let left = MAX_SKIPPED_BYTES;
  const reset = () => stream.close(constants.NGHTTP2_NO_ERROR);
  stream.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0 && stream.writableFinished) reset();
  });
  stream.once('finish', () => {
    const timer = setTimeout(reset, LINGER_MS).unref();
    stream.once('close', () => clearTimeout(timer));
  });
}

const awaited = new WeakSet<Http2ServerRequest>();
/** A client that sends nothing for so long waits for the response. */
const PAUSE_MS = 50;

/**
 * Calls `write` once the client has sent the body whose length it declared, pauses, or goes on beyond LINGER_BYTES or
 * LINGER_MS; at once if it declared none. connect-go ends its body when it sees a response, and one shorter than declared is
 * malformed (RFC 9113, 8.1.1): Node would reset the stream before the response is whole. A further call for the same request
 * does nothing.
 */
export function afterDeclaredBody(req: Http2ServerRequest, write: () => void): void {
  if (awaited.has(req)) return;
  const { 'content-length': declared, expect } = req.headers;
  if (req.complete || declared === undefined || expect !== undefined) {
    write();
    return;
  }
  awaited.add(req);
  const endMs = performance.now() + LINGER_MS;
  const timer = setTimeout(end, PAUSE_MS).unref();
  let left = LINGER_BYTES;
  function end() {
    clearTimeout(timer);
    req.off('data', onData).off('end', end).off('close', end);
    req.resume();
    write();
  }
  function onData(chunk: Buffer) {
    left -= chunk.length;
    if (left < 0 || performance.now() > endMs) end();
    else timer.refresh();
  }
  req.on('data', onData).on('end', end).on('close', end);
}

/** Ends a response with a body, written in chunks. */
export function endInChunks(res: ServerResponse, body: Uint8Array | undefined): void {
  if (body === undefined || body.length <= CHUNK_BYTES) {
    res.end(body);
    return;
  }
  let at = 0;
  const goOn = () => {
    for (;;) {
      const piece = body.subarray(at, at + CHUNK_BYTES);
      at += CHUNK_BYTES;
      if (at >= body.length) return void res.end(piece);
      if (!res.write(piece)) return void res.once('drain', goOn);
    }
  };
  goOn();
}

/** The REST error envelope as JSON, also for responses that the REST handler does not write. */
export function errorEnvelope(
  code: ErrorCode,
  message: string,
  requestId: string,
  details: JsonObject = {},
): string {
  return JSON.stringify({
    error: { code: errorRules(code).code, message, details, request_id: requestId },
  });
}

/** Responds with an error and records it; destroys the response if its headers were sent. */
export function writeError(record: RequestRecord, error: ApiError): void {
  record.error = error.code;
  if (record.res.headersSent) return void record.res.destroy();
  const body = errorEnvelope(error.code, error.message, record.requestId, error.details);
  // Both kinds of response have these methods, but TypeScript finds no common signature.
  const res = record.res as Extract<NodeResponse, { shouldKeepAlive: boolean }>;
  res.writeHead(errorRules(error.code).httpStatus, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'x-request-id': record.requestId,
    ...error.headers,
  });
  res.end(body);
}
