import type { ServerResponse } from 'node:http';
import { send } from '../rest/send.js';
import type { NodeRequest, NodeResponse } from '../socket/requests.js';

/** The answer to a call, complete; headers are names and values in turns. */
export type RpcAnswer = { status: number; headers: string[]; body?: Uint8Array; trailer?: Headers };

/**
 * Answers a call whose body may not have been read. On HTTP/2 what is left of it is skipped while the client sends it,
 * as clients of gRPC take the reset of a stream that they are still writing to for the call's failure.
 */
export function sendWhileReading(req: NodeRequest, nodeRes: NodeResponse, answer: RpcAnswer): void {
  const { status, headers, body, trailer } = answer;
  // Both kinds of response have these methods, but TypeScript finds no common signature.
  const res = nodeRes as ServerResponse;
  if (res.destroyed || res.writableEnded) return;
  if (req.httpVersionMajor < 2 && trailer === undefined) {
    send(req, res, { status, headers, body, etag: undefined });
    return;
  }
  for (let i = 0; i < headers.length; i += 2) res.setHeader(headers[i] as string, headers[i + 1] as string);
  if (body !== undefined) res.setHeader('content-length', body.byteLength);
  req.resume();
  res.writeHead(status);
  if (trailer !== undefined) res.addTrailers(Object.fromEntries(trailer));
  res.end(body);
}
