import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../../core/errors.js';
import type { NodeRequest } from './requests.js';

/** The client disconnected before its request was complete. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/** Reserves memory for bytes of a request's body; throws if none is left. It is released when the response closes. */
export type HoldBytes = (count: number) => void;

/** The body's length by the headers: 0 if there is none, undefined if they do not tell. */
export function bodyLength(req: NodeRequest): number | undefined {
  const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
  if (coding !== undefined) return undefined;
  if (length !== undefined) return Number(length);
  // HTTP/1.1 without either has no body (RFC 9112, 6.3); HTTP/2 says so with its headers.
  return 'stream' in req && !req.stream.endAfterHeaders ? undefined : 0;
}

/**
 * The whole body if it came with the headers, as small ones do: at once, where a stream takes two more ticks and a listener
 * for each of its events. Undefined if it has to be read as a stream. Throws `tooMuch()` if it is longer than `maxBytes`.
 */
export function takeReceived(
  req: NodeRequest,
  maxBytes: number,
  tooMuch: () => Error,
  hold: HoldBytes,
): Uint8Array | undefined {
  // With `Expect: 100-continue`, 100 is sent when the stream is read.
  if ('stream' in req || !req.complete || req.headers.expect !== undefined) return undefined;
  const size = req.readableLength;
  if (size === 0) return undefined;
  if (size > maxBytes) throw tooMuch();
  hold(size);
  return req.read() as Buffer;
}

/** Reads a whole body. Rejects with `tooMuch()` if it is longer than `maxBytes`, and with ClientGone. */
export function readStream(
  req: NodeRequest,
  maxBytes: number,
  tooMuch: () => Error,
  hold: HoldBytes,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) return settle(() => reject(tooMuch()));
      try {
        hold(chunk.length);
        chunks.push(chunk);
      } catch (error) {
        settle(() => reject(error));
      }
    };
    const onEnd = () =>
      settle(() => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    // A request closes after its end as well, but then nobody listens any more.
    const onClose = () => settle(() => reject(new ClientGone()));
    const settle = (how: () => void) => {
      req.off('data', onData).off('end', onEnd).off('close', onClose);
      how();
    };
    req.on('data', onData).on('end', onEnd).on('close', onClose);
    // A stream of HTTP/2 ends by itself if nothing is in it.
    if (req.readableEnded) onEnd();
    else if (req.destroyed) onClose();
  });
}

/** The error of a body that exceeds its bound. */
export function tooLarge(maxBytes: number): ApiError {
  return new ApiError(ErrorCode.REQUEST_TOO_LARGE, `the body is larger than ${maxBytes} bytes`);
}

/** The error of an unsupported media type or encoding; `headers` name the supported ones. */
export function unsupported(message: string, headers: Record<string, string>): ApiError {
  return new ApiError(ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE, message, {}, headers);
}
