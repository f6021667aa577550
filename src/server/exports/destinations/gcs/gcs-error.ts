/** Errors of Google's APIs, explained to the owner of a bucket. */
import { readRetryAfter } from '../../../net/retry-after.js';
import { DestinationError } from '../destination.js';
import { oneLine } from '../failure-text.js';
import type { HttpAnswer } from '../http-client.js';

const MAX_TEXT = 250;
const THROTTLED = 'Google throttles requests, or is not available';

/** The bucket's generation of the object is not the one of the condition. */
export class ConditionFailed extends Error {
  override readonly name = 'ConditionFailed';
}

/** Google has lost an upload that is under way: it begins anew, from the first byte. */
export class UploadLost extends DestinationError {}

/** The bucket's name, and the name of the identity that needs a role on it. */
export type GcsSubject = { bucket: string; account: string };

type GoogleError = { reason: string; message: string };

/** Makes the line for the owner of a bucket from the answer to a failed request. */
export function toGcsError(answer: HttpAnswer, subject: GcsSubject): Error {
  const error = parseGoogleError(answer.body);
  if (answer.status === 412) return new ConditionFailed(error.message);
  return describe(adviseOnBucket(answer.status, error, subject), answer, error);
}

/** As `toGcsError`, of a request that continues an upload. */
export function toUploadError(answer: HttpAnswer, subject: GcsSubject): Error {
  if (answer.status !== 404 && answer.status !== 410) return toGcsError(answer, subject);
  const { message } = describe('Google lost the upload on its way', answer, parseGoogleError(answer.body));
  return new UploadLost(message);
}

/** Makes the line from the answer to a failed request for a token of `account`. */
export function toImpersonationError(answer: HttpAnswer, account: string): DestinationError {
  return describe(adviseOnAccount(answer.status, account), answer, parseGoogleError(answer.body));
}

function describe(advice: string, { status, headers }: HttpAnswer, error: GoogleError): DestinationError {
  const detail = [`${status} ${error.reason}`.trim(), error.message].filter((text) => text !== '').join(': ');
  const retryAfterMs = readRetryAfter(headers['retry-after'], Date.now());
  return new DestinationError(`${advice} (${detail})`, { retryAfterMs });
}

function adviseOnBucket(status: number, { reason, message }: GoogleError, subject: GcsSubject): string {
  const { bucket, account } = subject;
  if (status === 429 || status === 503 || /rateLimitExceeded/i.test(reason)) return THROTTLED;
  if (/^(?:retentionPolicyNotMet|objectUnderActiveHold)$/.test(reason))
    return `the bucket ${bucket} must allow overwriting: remove its retention policy, or the hold`;
  if (/quotaExceeded|dailyLimitExceeded/i.test(reason)) return `the quota of the bucket ${bucket} is used up`;
  if (/requester pays/i.test(message)) return `the bucket ${bucket} must not be one whose requester pays`;
  if (status === 400 && /MD5|CRC32C/i.test(message)) return 'the data changed on its way';
  if (status === 401) return 'Google rejects the credentials';
  if (status === 403)
    return `grant ${account} the role Storage Object User (roles/storage.objectUser) on the bucket ${bucket}`;
  if (status === 404) return `the bucket ${bucket} does not exist; create it or correct its name`;
  if (status >= 300 && status < 400) return 'Google redirects, which is not followed';
  return status >= 500 ? 'Google failed' : 'Google refused the request';
}

function adviseOnAccount(status: number, account: string): string {
  if (status === 429 || status === 503) return THROTTLED;
  if (status === 403)
    return `grant this service the role Service Account Token Creator (roles/iam.serviceAccountTokenCreator) on ${account}`;
  if (status === 404)
    return `the service account ${account} does not exist; create it or correct its address`;
  return `Google gives no token for ${account}`;
}

/** Reads the error of the JSON API or of IAM, or the text of a proxy. */
function parseGoogleError(body: string): GoogleError {
  const error: { errors?: unknown; status?: unknown; message?: unknown } = Object(
    Object(parseJson(body)).error,
  );
  const [first] = Array.isArray(error.errors) ? (error.errors as unknown[]) : [];
  const reason = Object(first).reason ?? error.status;
  const message = error.message ?? body;
  return {
    reason: typeof reason === 'string' ? oneLine(reason, 64) : '',
    message: typeof message === 'string' ? oneLine(message, MAX_TEXT) : '',
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
