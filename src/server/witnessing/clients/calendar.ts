/** Client of OpenTimestamps calendar servers. */
import { toHex } from '../../../proof/bytes/encoding.js';
import { FormatError } from '../../../proof/bytes/format-error.js';
import { MAX_ANSWER_BYTES, parseCalendarAnswer } from '../../../proof/opentimestamps/calendar-answer.js';
import type { Timestamp } from '../../../proof/opentimestamps/timestamp.js';
import { boundedRequest, type RequestDeps, WitnessRequestError } from './bounded-request.js';

/** A calendar. `url` has no slash at its end. */
type CalendarConfig = { readonly url: string; readonly timeoutMs: number };

/** A calendar's text about a commitment that it has not upgraded yet. */
type NotYet = { readonly isPending: true; readonly reason: string };

const MAX_REASON_CHARACTERS = 100;

/** Submits a digest. Returns the calendar's timestamp of it. Throws WitnessRequestError. */
export async function submitDigest(
  deps: RequestDeps,
  { url, timeoutMs }: CalendarConfig,
  digest: Uint8Array,
  signal: AbortSignal,
): Promise<Timestamp> {
  const headers = { ...ACCEPT, 'content-type': 'application/octet-stream' };
  const wanted = {
    url: `${url}/digest`,
    method: 'POST',
    headers,
    body: digest,
    ...limits(timeoutMs),
  } as const;
  const { status, body } = await boundedRequest(deps, wanted, signal);
  if (status !== 200) throw wrongStatus(status, body);
  return parse(digest, body);
}

/**
 * Fetches what a calendar has made of a commitment. Returns its timestamp, or that it is pending (HTTP 404). Throws
 * WitnessRequestError with one line for operators.
 */
export async function fetchUpgrade(
  deps: RequestDeps,
  { url, timeoutMs }: CalendarConfig,
  commitment: Uint8Array,
  signal: AbortSignal,
): Promise<Timestamp | NotYet> {
  const address = `${url}/timestamp/${toHex(commitment)}`;
  const wanted = { url: address, method: 'GET', headers: ACCEPT, ...limits(timeoutMs) } as const;
  const { status, body } = await boundedRequest(deps, wanted, signal);
  if (status === 404) return { isPending: true, reason: printable(body) };
  if (status !== 200) throw wrongStatus(status, body);
  return parse(commitment, body);
}

const ACCEPT = { accept: 'application/vnd.opentimestamps.v1' };

function limits(timeoutMs: number) {
  return { timeoutMs, maxBytes: MAX_ANSWER_BYTES };
}

function parse(message: Uint8Array, answer: Uint8Array): Timestamp {
  try {
    return parseCalendarAnswer(message, answer);
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    throw new WitnessRequestError('malformed', `malformed answer: ${error.message}`, { cause: error });
  }
}

function wrongStatus(status: number, body: Uint8Array): WitnessRequestError {
  const reason = printable(body);
  return new WitnessRequestError('http_status', `HTTP ${status}${reason === '' ? '' : ` (${reason})`}`);
}

/** The first line of a foreign text, in the characters that other clients show. */
function printable(body: Uint8Array): string {
  const [line = ''] = Buffer.from(body.subarray(0, MAX_REASON_CHARACTERS))
    .toString('latin1')
    .split(/[\r\n]/);
  return line.replace(/[^A-Za-z0-9#\-.,; ]/g, '_').trim();
}
