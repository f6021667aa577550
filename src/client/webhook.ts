/** Verification of webhook deliveries. */
import { fromBase64, utf8 } from '../proof/bytes/encoding.js';
import { hmacSha256 } from '../proof/bytes/primitives.js';
import { checkOptions, DATE, type OptionCheck, type OptionChecks } from './input/options.js';
import { parseEvent, type WebhookEvent } from './webhook-event.js';
import { readSignatures, type Signature, type WebhookHeaders } from './webhook-headers.js';
import { WebhookVerificationError } from './webhook-verification-error.js';

export type VerifyWebhookOptions = {
  /** Allowed difference between the signature's time and now, in seconds; 300 by default, Infinity for any age. */
  readonly toleranceSeconds?: number;
  /** The time to check against; now by default. */
  readonly now?: Date;
};

const TOLERANCE: OptionCheck = {
  isRight: (value) => typeof value === 'number' && value >= 0,
  expected: 'a number from 0',
};

const OPTIONS: OptionChecks<VerifyWebhookOptions> = { toleranceSeconds: TOLERANCE, now: DATE };

const DEFAULT_TOLERANCE_SECONDS = 300;
const SECRET_PREFIX = 'whsec_';
const MIN_KEY_BYTES = 24;
const MAX_KEY_BYTES = 64;

/**
 * Verifies the signature of a delivery and returns its event. `rawBody` is the request's body as received, before any
 * JSON parser; `headers` are the request's, in the framework's form; `secret` is the subscription's, or a list of which
 * one must have signed. Understands `Service-Signature` and the headers of Standard Webhooks: one is enough, and if
 * both are present both must be valid. Of the signatures in a header one must match; malformed ones are ignored beside it.
 *
 * Throws WebhookVerificationError, whose `code` names the failed check: respond with status 400. Throws TypeError if a
 * secret is missing, blank, malformed or has white space around it, or the body was already parsed.
 */
export function verifyWebhook(
  rawBody: string | Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options: VerifyWebhookOptions = {},
): WebhookEvent {
  checkOptions(options, OPTIONS);
  const { toleranceSeconds = DEFAULT_TOLERANCE_SECONDS, now = new Date() } = options;
  const body = bytesOf(rawBody);
  const keys = keysOf(secret);
  for (const signature of readSignatures(headers, body)) {
    checkMac(signature, keys);
    checkTime(signature, now.getTime() / 1000, toleranceSeconds);
  }
  return parseEvent(body);
}

function bytesOf(rawBody: unknown): Uint8Array {
  if (typeof rawBody === 'string') return utf8(rawBody);
  if (rawBody instanceof Uint8Array) return rawBody;
  if (rawBody instanceof ArrayBuffer) return new Uint8Array(rawBody);
  throw new TypeError('rawBody is not a string or bytes: hand over the body as it came, not the parsed JSON');
}

function keysOf(secret: string | readonly string[]): Uint8Array[] {
  const secrets: readonly unknown[] = Array.isArray(secret) ? secret : [secret];
  if (secrets.length === 0) throw new TypeError('there is no secret to verify with: the list is empty');
  return secrets.map((one, i) =>
    keyOf(one, secrets.length === 1 ? 'the secret' : `secret ${i + 1} of the list`),
  );
}

/** Its errors never contain the secret. */
function keyOf(secret: unknown, which: string): Uint8Array {
  if (secret == null || (typeof secret === 'string' && secret.trim() === '')) {
    const state = secret == null ? 'missing' : 'blank';
    throw new TypeError(`${which} is ${state}: is the variable that it is read from set?`);
  }
  if (typeof secret !== 'string') throw new TypeError(`${which} is not a string`);
  if (secret !== secret.trim()) {
    throw new TypeError(`${which} has white space around it, such as a line break: trim it where it is read`);
  }
  const key = secret.startsWith(SECRET_PREFIX) ? findBytes(secret.slice(SECRET_PREFIX.length)) : undefined;
  if (key === undefined || key.length < MIN_KEY_BYTES || key.length > MAX_KEY_BYTES) {
    throw new TypeError(`${which} is not a webhook's: that is whsec_ and the base64 of 24 to 64 bytes`);
  }
  return key;
}

function findBytes(base64: string): Uint8Array | undefined {
  try {
    return fromBase64(base64);
  } catch {
    return undefined;
  }
}

/** Compares every MAC with every key's, so that timing does not reveal which one was close. */
function checkMac({ header, content, macs }: Signature, keys: readonly Uint8Array[]): void {
  let matches = 0;
  for (const key of keys) {
    const expected = hmacSha256(key, content);
    for (const mac of macs) matches |= isSame(mac, expected) ? 1 : 0;
  }
  if (matches === 0) {
    throw new WebhookVerificationError(
      'signature.mismatch',
      `no signature in ${header} is by a given secret over this body: the secret is another, or the body was changed`,
    );
  }
}

/** In constant time for values of the same length. */
function isSame(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= (a[i] as number) ^ (b[i] as number);
  return difference === 0;
}

function checkTime({ header, timestamp }: Signature, now: number, toleranceSeconds: number): void {
  const ageSeconds = now - timestamp;
  if (Math.abs(ageSeconds) <= toleranceSeconds) return;
  const isOld = ageSeconds > 0;
  const howFar = `${Math.round(Math.abs(ageSeconds))} s ${isOld ? 'ago' : 'ahead'}`;
  throw new WebhookVerificationError(
    isOld ? 'timestamp.too_old' : 'timestamp.in_future',
    `${header} was signed ${howFar}, more than ${toleranceSeconds} s are not tolerated`,
  );
}
