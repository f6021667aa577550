import type { ServerResponse } from 'node:http';
import { endInChunks, writeResponse } from '../rest/write-response.js';
import type { RequestRecord } from '../socket/requests.js';

/** A whole response to an RPC; `headers` alternate names and values. */
export type RpcResponse = {
  status: number;
  headers: string[];
  body?: Uint8Array;
  trailers?: Readonly<Record<string, string>>;
};

/**
 * Responds to a call whose body may be unread. On HTTP/2 the rest of it is discarded while the client sends it,
 * because gRPC clients report the reset of a stream that they still write to as the call's error. Does nothing if the
 * client has disconnected or a response was written.
 */
export function writeRpcResponse({ req, res: nodeRes }: RequestRecord, answer: RpcResponse): void {
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
