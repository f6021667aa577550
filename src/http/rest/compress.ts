import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import type { RequestRecord } from '../requests.js';
import type { Answer } from './send.js';

/** Below this, compressing costs more time than it saves. */
export const MIN_COMPRESSED_BYTES = 16 * 1024;

const compress = promisify(gzip);

/**
 * The answer as a client gets it that may take gzip (RFC 9110, 12.5.3): the same object, or a promise of its compressed
 * form. Entity tags are over the bytes that are not compressed, so the compressed form has a weak one (8.8.1).
 */
export function negotiate(
  { req, res }: Pick<RequestRecord, 'req' | 'res'>,
  answer: Answer,
): Answer | Promise<Answer> {
  const { status, headers, body } = answer;
  if (status !== 304 && (body === undefined || body.byteLength < MIN_COMPRESSED_BYTES)) return answer;
  const vary = res.getHeader('vary');
  headers.vary = vary === undefined ? 'accept-encoding' : `${vary}, accept-encoding`;
  const accepted = req.headers['accept-encoding'];
  return body === undefined || !acceptsGzip(accepted) ? answer : compressed(answer, body);
}

async function compressed({ status, headers }: Answer, body: Uint8Array): Promise<Answer> {
  headers['content-encoding'] = 'gzip';
  if (headers.etag !== undefined) headers.etag = `W/${headers.etag}`;
  return { status, headers, body: await compress(body, { level: constants.Z_BEST_SPEED }) };
}

/** Whether the header names gzip, or everything, with a weight that is not 0. */
function acceptsGzip(header: string | string[] | undefined): boolean {
  const codings = String(header ?? '')
    .toLowerCase()
    .split(',')
    .map((item) => item.split(';').map((part) => part.trim()));
  const found = ['gzip', 'x-gzip', '*'].map((name) => codings.find(([coding]) => coding === name));
  const [, weight = 'q=1'] = found.find((item) => item !== undefined) ?? ['', 'q=0'];
  return Number(weight.replace(/^q=/, '')) > 0;
}
