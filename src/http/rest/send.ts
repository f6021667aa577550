import type { ServerResponse } from 'node:http';
import { constants, type Http2ServerRequest } from 'node:http2';
import type { NodeRequest, NodeResponse } from '../requests.js';
import { bodyLength } from './body.js';

/** An answer, complete. */
export type Answer = {
  status: number;
  /** By lower-case name, without `content-length`. */
  headers: Record<string, string>;
  /** Undefined for statuses that have no body. */
  body: Uint8Array | undefined;
};

/** A body of at most this many bytes that nobody has read is left to Node to skip, so that the connection stays. */
const MAX_SKIPPED_BYTES = 64 * 1024;
/** How much of a larger one is skipped, and how long, before the connection is cut. */
const LINGER_BYTES = 4 * 1024 * 1024;
const LINGER_MS = 2_000;

/** Sends an answer; to HEAD all but the body. Nothing happens when the client has gone, or was answered already. */
export function send(req: NodeRequest, nodeRes: NodeResponse, { status, headers, body }: Answer): void {
  // Both kinds of response have these methods, but TypeScript finds no common signature.
  const res = nodeRes as ServerResponse;
  if (res.destroyed || res.writableEnded) return;
  if (body !== undefined) headers['content-length'] = String(body.byteLength);
  const sent = req.method === 'HEAD' ? undefined : body;
  if (!hasLargeUnreadBody(req)) {
    res.writeHead(status, headers);
    res.end(sent);
  } else if (req.httpVersionMajor < 2) {
    res.writeHead(status, { ...headers, connection: 'close' });
    lingerThenEnd(req, res, sent);
  } else {
    const { stream } = req as Http2ServerRequest;
    res.writeHead(status, headers);
    // RFC 9113, 8.1: the answer is complete, the rest of the request is not wanted.
    stream.once('finish', () => stream.close(constants.NGHTTP2_NO_ERROR));
    res.end(sent);
  }
}

function hasLargeUnreadBody(req: NodeRequest): boolean {
  if (req.complete) return false;
  const length = bodyLength(req);
  return length === undefined || length > MAX_SKIPPED_BYTES;
}

/**
 * Sends the whole answer, then skips what the client is still sending before the connection closes: closing it with
 * unread data in it would reset it, and the client might lose the answer (RFC 9112, 9.6).
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
