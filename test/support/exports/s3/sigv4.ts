/** Verifies AWS Signature Version 4 in the header `Authorization`. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { AccessKeys } from './keys.js';
import { S3Error } from './s3-error.js';

const MAX_SKEW_MS = 15 * 60_000;
const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/, ]+)\/(\d{8})\/([^/, ]+)\/([^/, ]+)\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/;

/** A request as it came; `url` is path and query, not decoded. */
export type SignedRequest = { method: string; url: string; headers: IncomingHttpHeaders };

/** What a signature is checked against. */
export type Verifier = {
  service: 's3' | 'sts';
  /** Undefined if any will do. */
  region: string | undefined;
  keys: AccessKeys;
  now: () => number;
};

type Authorization = {
  accessKeyId: string;
  date: string;
  region: string;
  service: string;
  signedHeaders: string[];
  signature: string;
};

/** Verifies a request with the hash of its body as it states it, and returns the id of the key that signed it. */
export function verifySignature(verifier: Verifier, request: SignedRequest, payloadHash: string): string {
  const authorization = parseAuthorization(request.headers.authorization);
  checkScope(verifier, authorization);
  const key = verifier.keys.get(authorization.accessKeyId);
  if (key === undefined) {
    const code = verifier.service === 's3' ? 'InvalidAccessKeyId' : 'InvalidClientTokenId';
    throw new S3Error(code, 'The AWS Access Key Id you provided does not exist in our records.');
  }
  const time = checkTime(verifier, request.headers, authorization);
  checkSignedHeaders(request.headers, authorization);
  const canonical = canonicalRequest(request, authorization, { payloadHash, service: verifier.service });
  const scope = [authorization.date, authorization.region, authorization.service, 'aws4_request'];
  const toSign = ['AWS4-HMAC-SHA256', time, scope.join('/'), sha256(canonical)].join('\n');
  const signingKey = scope.reduce<string | Buffer>(hmac, `AWS4${key.secretAccessKey}`);
  if (!timingSafeEqual(hmac(signingKey, toSign), Buffer.from(authorization.signature, 'hex')))
    throw new S3Error('SignatureDoesNotMatch', 'The request signature we calculated does not match.');
  if (request.headers['x-amz-security-token'] !== key.sessionToken)
    throw new S3Error('InvalidToken', 'The provided token is malformed or otherwise invalid.');
  if (key.expiresAt !== undefined && key.expiresAt <= verifier.now())
    throw new S3Error('ExpiredToken', 'The provided token has expired.');
  return authorization.accessKeyId;
}

function parseAuthorization(header: string | undefined): Authorization {
  if (header === undefined) throw new S3Error('AccessDenied', 'Access Denied');
  const found = AUTHORIZATION.exec(header);
  if (found === null)
    throw new S3Error('AuthorizationHeaderMalformed', 'The authorization header is malformed.');
  const [, accessKeyId = '', date = '', region = '', service = '', signed = '', signature = ''] = found;
  return { accessKeyId, date, region, service, signedHeaders: signed.split(';'), signature };
}

function checkScope(verifier: Verifier, { region, service }: Authorization): void {
  if (service !== verifier.service)
    throw new S3Error('AuthorizationHeaderMalformed', `The service '${service}' is wrong.`);
  if (verifier.region === undefined || verifier.region === region) return;
  throw new S3Error(
    'AuthorizationHeaderMalformed',
    `The authorization header is malformed; the region '${region}' is wrong; expecting '${verifier.region}'`,
    { headers: { 'x-amz-bucket-region': verifier.region } },
  );
}

function checkTime(verifier: Verifier, headers: IncomingHttpHeaders, { date }: Authorization): string {
  const time = headers['x-amz-date'];
  const parts = typeof time === 'string' ? /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(time) : null;
  if (typeof time !== 'string' || parts === null || !time.startsWith(date))
    throw new S3Error('AccessDenied', 'AWS authentication requires a valid Date or x-amz-date header');
  const [, year, month, day, hours, minutes, seconds] = parts;
  const sent = Date.parse(`${year}-${month}-${day}T${hours}:${minutes}:${seconds}Z`);
  if (!(Math.abs(sent - verifier.now()) <= MAX_SKEW_MS))
    throw new S3Error(
      'RequestTimeTooSkewed',
      'The difference between the request time and ours is too large.',
    );
  return time;
}

/** What changes the meaning of a request must be signed. */
function checkSignedHeaders(headers: IncomingHttpHeaders, { signedHeaders }: Authorization): void {
  const signed = new Set(signedHeaders);
  const needed = Object.keys(headers).filter((name) => name === 'host' || name.startsWith('x-amz-'));
  const missing = needed.filter((name) => !signed.has(name));
  if (missing.length > 0)
    throw new S3Error(
      'AccessDenied',
      `There were headers present which were not signed: ${missing.join(', ')}`,
    );
}

function canonicalRequest(
  { method, url, headers }: SignedRequest,
  { signedHeaders }: Authorization,
  { payloadHash, service }: { payloadHash: string; service: string },
): string {
  const [path = '/', query = ''] = splitOnce(url, '?');
  const pairs = query
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) =>
      splitOnce(pair, '=')
        .map((part) => encode(decode(part)))
        .join('='),
    )
    .sort();
  // S3 encodes the path once, all others twice.
  const segments = path.split('/').map((segment) => encode(service === 's3' ? decode(segment) : segment));
  const values = signedHeaders.map((name) => `${name}:${canonicalValue(headers[name])}\n`);
  return [
    method,
    segments.join('/'),
    pairs.join('&'),
    values.join(''),
    signedHeaders.join(';'),
    payloadHash,
  ].join('\n');
}

function canonicalValue(value: string | string[] | undefined): string {
  return [value ?? ''].flat().join(',').trim().replaceAll(/ +/g, ' ');
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + separator.length)];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new S3Error('InvalidURI', "Couldn't parse the specified URI.");
  }
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  });
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
