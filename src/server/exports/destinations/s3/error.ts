/** Explains errors of the SDK, the store and the network to the owner of a bucket. */
import { firstError } from '../../../../protocol/first-error.js';
import { readRetryAfter } from '../../../net/retry-after.js';
import { DestinationError } from '../destination.js';
import { oneLine, predicateOf } from '../failure-text.js';

/** Maximum length of the store's message. */
const MAX_TEXT = 300;
const MAX_LINE = 500;
const SDK_HINT = '\n  Deserialization error';

/** The failed request: its IAM action (`s3:PutObject`) and its resource (`bucket/key`). */
export type Operation = { action: string; resource: string };

/** The common fields of errors of the SDK and of Node. A store's error may have any value in any of them. */
type Failure = {
  name: string;
  code: string;
  message: string;
  status: number;
  headers: Readonly<Record<string, string>>;
  /** The bucket's region, if the store names it. */
  region: string | undefined;
};

/** Advice by the code of the store's error. */
const ADVICE: Readonly<Record<string, string>> = {
  NoSuchBucket: 'the bucket does not exist; create it or correct its name',
  InvalidBucketName: 'the name is not one of a bucket; correct it',
  InvalidAccessKeyId: 'the store does not know the access key; correct access_key_id',
  InvalidClientTokenId: 'AWS does not know the access key; correct access_key_id',
  SignatureDoesNotMatch: 'the secret does not belong to the access key; correct secret_access_key',
  RequestTimeTooSkewed: "the store's clock differs from ours by more than 15 minutes; correct it",
  ExpiredToken: 'the credentials have expired',
  InvalidToken: 'the store rejects the session token of the credentials',
  NotImplemented: 'the store lacks what exports need; use another store',
  QuotaExceeded: 'the store is full; make space or raise its quota',
  XAmzContentSHA256Mismatch: 'the data changed on its way; retry',
  BadDigest: 'the data changed on its way; retry',
  EntityTooLarge: 'the store rejects objects of this size; raise its limit',
  MetadataTooLarge: 'the store rejects the metadata of objects; raise its limit',
};

const ADVICE_BY_STATUS: Readonly<Record<number, string>> = {
  413: ADVICE.EntityTooLarge as string,
  501: ADVICE.NotImplemented as string,
  507: ADVICE.QuotaExceeded as string,
};

const WRONG_REGION = new Set([
  'PermanentRedirect',
  'TemporaryRedirect',
  'Redirect',
  'AuthorizationHeaderMalformed',
  'IllegalLocationConstraintException',
]);
const THROTTLED = new Set([
  'SlowDown',
  'Throttling',
  'ThrottlingException',
  'TooManyRequests',
  'RequestLimitExceeded',
]);

/** The object could not be read, with the reason as its cause: no failure of the bucket. */
export class SourceError extends Error {}

/** Makes the line for the owner of a failed operation. */
export function toDestinationError(error: unknown, operation: Operation): DestinationError {
  // The SDK adds its answer and a hint to an error that comes by it.
  if (error instanceof DestinationError)
    return new DestinationError(clean(error.message, MAX_LINE), { retryAfterMs: error.retryAfterMs });
  const failure = readFailure(error);
  const retryAfterMs = readRetryAfter(failure.headers['retry-after'], Date.now());
  const message = `${advise(failure, operation)} (${operation.action} ${operation.resource}: ${detailOf(failure)})`;
  // No cause: the SDK's errors hold the request with its session token.
  return new DestinationError(clean(message, MAX_LINE), { retryAfterMs });
}

/** Whether the condition of a write did not hold: another writer wrote, or deleted, what was read. */
export function isLostRace(error: unknown): boolean {
  const { name, status } = readFailure(error);
  if (status === 412 || name === 'PreconditionFailed' || name === 'ConditionalRequestConflict') return true;
  return name === 'NoSuchKey' || name === 'NoSuchUpload';
}

/** The HTTP status of the store's answer; 0 if there was none. */
export function statusOf(error: unknown): number {
  return readFailure(error).status;
}

/** Whether the store rejects the session of temporary credentials. */
export function isExpired(error: unknown): boolean {
  return ['ExpiredToken', 'ExpiredTokenException', 'InvalidToken'].includes(readFailure(error).name);
}

/** Whether the SDK has corrected its clock by this error: the next request has the store's time. */
export function isClockCorrected(error: unknown): boolean {
  return Object(Object(error).$metadata).clockSkewCorrected === true;
}

function advise(failure: Failure, { action }: Operation): string {
  const { name, status, code, region } = failure;
  if (WRONG_REGION.has(name) || status === 301 || status === 307)
    return `the bucket is in another region; set region${region === undefined ? '' : ` to ${region}`}`;
  if (THROTTLED.has(name) || status === 429) return 'the store throttles requests';
  if (/^KMS\./.test(name)) return "allow the use of the bucket's KMS key";
  if (/Quota|StorageFull|InsufficientStorage/i.test(name)) return ADVICE.QuotaExceeded as string;
  const advice = Object.hasOwn(ADVICE, name) ? ADVICE[name] : ADVICE_BY_STATUS[status];
  if (advice === undefined && (status === 403 || name === 'AccessDenied'))
    return `access is denied; allow ${action}`;
  if (advice !== undefined) return advice;
  if (status === 0) return adviseOnNetwork(name, code);
  return status >= 500 ? 'the store failed' : 'the store refused';
}

function adviseOnNetwork(name: string, code: string): string {
  if (code !== '') return `the host ${predicateOf(code)}`;
  return name === 'TimeoutError' ? 'the host timed out' : 'the request failed';
}

/** Code and message, without the names that the SDK and Node give to errors that have none. */
function detailOf({ name, message, status }: Failure): string {
  const texts = [name, message].filter((text) => !/^(?:|Error|Unknown|UnknownError)$/.test(text));
  return texts.length > 0 ? texts.join(': ') : `HTTP ${status}`;
}

function readFailure(error: unknown): Failure {
  const fields = Object(firstError(error)) as Record<string, unknown>;
  const metadata = Object(fields.$metadata) as Record<string, unknown>;
  const response = Object(fields.$response) as Record<string, unknown>;
  const status = metadata.httpStatusCode;
  const headers = Object(response.headers) as Record<string, string>;
  const textOf = (value: unknown, length: number) => (typeof value === 'string' ? clean(value, length) : '');
  return {
    name: textOf(fields.name, 64),
    code: textOf(fields.code, 64),
    message: textOf(fields.message, MAX_TEXT),
    status: typeof status === 'number' ? status : 0,
    headers,
    region: textOf(headers['x-amz-bucket-region'] ?? fields.Region, 64) || undefined,
  };
}

/** One line of printable text, cut to a length, without the hint that the SDK adds for developers. */
export function clean(text: string, length: number): string {
  const [own = ''] = text.slice(0, 2 * length).split(SDK_HINT, 1);
  return oneLine(own, length);
}
