import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../../errors.js';
import { invalidRequest } from '../../json/problems.js';
import type { NodeRequest } from '../requests.js';
import { isJsonType } from './media-type.js';
import type { BodyKind } from './request.js';

/** The client went away before its request was complete: nobody is left to answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

const NO_BODY = new Uint8Array();

/**
 * Reads a request's body. Throws `request.too_large` and `request.unsupported_media_type` before it reads anything
 * where the headers tell, `request.invalid` when there is a body where none is wanted, ClientGone.
 */
export function readBody(
  req: NodeRequest,
  kind: BodyKind,
  maxBytes: number,
): Promise<Uint8Array> | Uint8Array {
  const length = bodyLength(req);
  if (length === 0) return NO_BODY;
  if (kind === 'none') return refuseBody(req, length);
  if (length !== undefined && length > maxBytes) throw tooLarge(maxBytes);
  checkMediaType(req, kind);
  return readStream(req, maxBytes, () => tooLarge(maxBytes));
}

/** The body's length as far as the headers tell: 0 for none, undefined when only its end will tell. */
export function bodyLength(req: NodeRequest): number | undefined {
  const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
  if (coding !== undefined) return undefined;
  if (length !== undefined) return Number(length);
  // HTTP/1.1 without either has no body (RFC 9112, 6.3); HTTP/2 says so with its headers.
  return 'stream' in req && !req.stream.endAfterHeaders ? undefined : 0;
}

async function refuseBody(req: NodeRequest, length: number | undefined): Promise<Uint8Array> {
  const problem = () => invalidRequest([{ path: '', message: 'must not have a body' }]);
  if (length !== undefined) throw problem();
  return readStream(req, 0, problem);
}

function checkMediaType({ headers }: NodeRequest, kind: BodyKind): void {
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw unsupported('the body must not be compressed', { 'accept-encoding': 'identity' });
  }
  if (kind === 'json' && !isJsonType(headers['content-type'] ?? '')) {
    throw unsupported('the body must be application/json in UTF-8', { accept: 'application/json' });
  }
}

function readStream(req: NodeRequest, maxBytes: number, tooMuch: () => Error): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) chunks.push(chunk);
      else settle(() => reject(tooMuch()));
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

function tooLarge(maxBytes: number): ApiError {
  return new ApiError(ErrorCode.REQUEST_TOO_LARGE, `the body is larger than ${maxBytes} bytes`);
}

function unsupported(message: string, headers: Record<string, string>): ApiError {
  return new ApiError(ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE, message, {}, headers);
}
