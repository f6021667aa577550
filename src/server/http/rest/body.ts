import { invalidRequest } from '../../json/problems.js';
import {
  bodyLength,
  type HoldBytes,
  readStream,
  takeReceived,
  tooLarge,
  unsupported,
} from '../socket/read-body.js';
import type { NodeRequest } from '../socket/requests.js';
import type { BodyKind } from './request.js';

const NO_BODY = new Uint8Array();

/**
 * Reads a request's body. Rejects with `request.too_large` and `request.unsupported_media_type` before it reads anything
 * if the headers suffice, `request.invalid` for a body that the route does not take, ClientGone.
 */
export async function readBody(
  req: NodeRequest,
  kind: BodyKind,
  maxBytes: number,
  hold: HoldBytes,
): Promise<Uint8Array> {
  const length = bodyLength(req);
  if (length === 0) return NO_BODY;
  if (kind === 'none') return refuseBody(req, length, hold);
  if (length !== undefined && length > maxBytes) throw tooLarge(maxBytes);
  checkMediaType(req, kind);
  const tooMuch = () => tooLarge(maxBytes);
  return takeReceived(req, maxBytes, tooMuch, hold) ?? readStream(req, maxBytes, tooMuch, hold);
}

async function refuseBody(
  req: NodeRequest,
  length: number | undefined,
  hold: HoldBytes,
): Promise<Uint8Array> {
  const problem = () => invalidRequest([{ path: '', message: 'must not have a body' }]);
  if (length !== undefined) throw problem();
  return readStream(req, 0, problem, hold);
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

const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i;
const CHARSET = /;[ \t]*charset[ \t]*=[ \t]*"?([^";\s]*)"?/i;

/** Whether a `Content-Type` is JSON in UTF-8; parameters other than the charset do not matter. */
function isJsonType(contentType: string): boolean {
  if (contentType === 'application/json') return true;
  if (!JSON_TYPE.test(contentType)) return false;
  const charset = CHARSET.exec(contentType)?.[1];
  return charset === undefined || /^utf-?8$/i.test(charset);
}
