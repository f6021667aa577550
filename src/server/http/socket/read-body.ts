import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../../core/errors.js';
import type { NodeRequest } from './requests.js';

/** The client went away before its request was complete: nobody is left to answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/** Throws when no more bytes can be held for a request; what it has admitted is given back with the request's answer. */
export type HoldBytes = (count: number) => void;

/** The body's length as far as the headers tell: 0 for none, undefined when only its end will tell. */
export function bodyLength(req: NodeRequest): number | undefined {
  const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
  if (coding !== undefined) return undefined;
  if (length !== undefined) return Number(length);
  // HTTP/1.1 without either has no body (RFC 9112, 6.3); HTTP/2 says so with its headers.
  return 'stream' in req && !req.stream.endAfterHeaders ? undefined : 0;
}

/** All of a request's body; rejects with what `tooMuch` makes when it is longer than `maxBytes`, and with ClientGone. */
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
    if (req.destroyed) onClose();
  });
}

/** The refusal of a body that is larger than the request can need. */
export function tooLarge(maxBytes: number): ApiError {
  return new ApiError(ErrorCode.REQUEST_TOO_LARGE, `the body is larger than ${maxBytes} bytes`);
}

/** The refusal of a body in a form that is not read; the headers say which are. */
export function unsupported(message: string, headers: Record<string, string>): ApiError {
  return new ApiError(ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE, message, {}, headers);
}
