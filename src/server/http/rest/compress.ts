import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import { acceptsGzip, MIN_COMPRESSED_BYTES } from '../../core/gzip.js';
import type { RequestRecord } from '../socket/requests.js';
import type { Answer } from './send.js';

const compress = promisify(gzip);

/**
 * The answer as a client gets it that may take gzip: the same object, or its compressed form. Entity tags are over the bytes that are not compressed, so the compressed form has a weak one (8.8.1).
 */
export async function negotiate(
  { req, res }: Pick<RequestRecord, 'req' | 'res'>,
  answer: Answer,
): Promise<Answer> {
  const { status, headers, body } = answer;
  if (status !== 304 && (body === undefined || body.byteLength < MIN_COMPRESSED_BYTES)) return answer;
  const vary = res.getHeader('vary');
  headers.push('vary', vary === undefined ? 'accept-encoding' : `${vary}, accept-encoding`);
  const accepted = req.headers['accept-encoding'];
  return body === undefined || !acceptsGzip(accepted) ? answer : compressed(answer, body);
}

async function compressed({ status, headers, etag }: Answer, body: Uint8Array): Promise<Answer> {
  headers.push('content-encoding', 'gzip');
  const smaller = await compress(body, { level: constants.Z_BEST_SPEED });
  return { status, headers, body: smaller, etag: etag && `W/${etag}` };
}
