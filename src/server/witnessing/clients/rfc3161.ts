/** A witness that is an RFC 3161 time-stamping authority, over HTTP or in this process. */
import { toHex } from '../../../proof/bytes/encoding.js';
import { digest as digestOf, type HashName } from '../../../proof/rfc3161/algorithm.js';
import { verifyTimestamp } from '../../../proof/rfc3161/verify-timestamp.js';
import { boundedRequest, type RequestDeps, WitnessRequestError } from './bounded-request.js';
import { timestampRequest } from './timestamp-request.js';
import type { Witness, WitnessEvidence } from './witness.js';

/** Sends a DER TimeStampReq to an authority and returns its DER TimeStampResp. */
type TimestampTransport = (request: Uint8Array, signal: AbortSignal) => Promise<Uint8Array>;

/** The trusted chains, in DER, leaf first, as `verifyTimestamp` expects them. */
type TimestampTrust = {
  chains: readonly (readonly Uint8Array[])[];
  /** The requested and required policy; the authority's default if omitted. */
  policyOid?: string | undefined;
};

/** `message` is stamped by its digest. */
type TimestampQuestion = TimestampTrust & { message: Uint8Array; hash?: HashName; nonce: Uint8Array };

type Rfc3161WitnessDeps = { send: TimestampTransport; randomBytes: (size: number) => Uint8Array };

/** `headers` are added to each request, such as credentials. */
type HttpTimestampConfig = {
  url: string;
  headers?: Readonly<Record<string, string>>;
  timeoutMs: number;
  maxBytes: number;
};

const NONCE_BYTES = 16;

/** Creates a witness. Each request has a random nonce of 128 bits. */
export function rfc3161Witness(
  deps: Rfc3161WitnessDeps,
  config: TimestampTrust & { name: string; hash?: HashName },
): Witness {
  const { name, hash = 'SHA-256', chains, policyOid } = config;
  return {
    name,
    kind: 'rfc3161',
    ask: async ({ body }, signal) => {
      const question = { message: body, hash, nonce: deps.randomBytes(NONCE_BYTES), chains, policyOid };
      return { type: 'landed', ...(await requestTimestamp(deps, question, signal)) };
    },
  };
}

/** Creates a function that requests a time stamp of a signature and verifies it, as {@link requestTimestamp} does. */
export function signatureStamps(
  deps: Rfc3161WitnessDeps,
  trust: TimestampTrust & { hash?: HashName },
): (signature: Uint8Array, signal: AbortSignal) => Promise<{ response: Uint8Array; genTime: Date }> {
  return async (message, signal) => {
    const question = { ...trust, message, nonce: deps.randomBytes(NONCE_BYTES) };
    const { evidence, detail } = await requestTimestamp(deps, question, signal);
    return { response: evidence, genTime: new Date(String(detail.gen_time)) };
  };
}

/**
 * Requests a time stamp of `message`, by SHA-256 or `hash`, and verifies it. `evidence` is the whole TimeStampResp, `detail` is `{policy_oid, serial
 * (hex), gen_time (RFC 3339, ms), nonce (hex)}`. Throws TimestampError if the stamp does not verify, and the
 * transport's errors.
 */
export async function requestTimestamp(
  { send }: Pick<Rfc3161WitnessDeps, 'send'>,
  { message, hash = 'SHA-256', nonce, policyOid, chains }: TimestampQuestion,
  signal: AbortSignal,
): Promise<WitnessEvidence> {
  const digest = await digestOf(hash, message);
  const evidence = await send(timestampRequest({ digest, hash, nonce, certReq: true, policyOid }), signal);
  const stamp = await verifyTimestamp({ response: evidence, stamped: { message }, nonce, policyOid, chains });
  return {
    evidence,
    detail: {
      policy_oid: stamp.policyOid,
      serial: stamp.serial,
      gen_time: stamp.genTime.toISOString(),
      nonce: toHex(nonce),
    },
  };
}

/** Transport over HTTP (RFC 3161, section 3.4). Throws WitnessRequestError, also for any status but 200. */
export function httpTimestampTransport(deps: RequestDeps, config: HttpTimestampConfig): TimestampTransport {
  return async (body, signal) => {
    const headers = {
      ...config.headers,
      'content-type': 'application/timestamp-query',
      accept: 'application/timestamp-reply',
    };
    const answer = await boundedRequest(deps, { ...config, method: 'POST', headers, body }, signal);
    if (answer.status !== 200) {
      throw new WitnessRequestError('http_status', `the authority answered with status ${answer.status}`);
    }
    if (answer.contentType !== 'application/timestamp-reply') {
      const found = answer.contentType.slice(0, 60) || 'no content type';
      throw new WitnessRequestError(
        'content_type',
        `the authority answered with ${found}, not a time-stamp reply`,
      );
    }
    return answer.body;
  };
}
