/** Requests to the JSON APIs of key management services: bounded in time and in bytes, and repeated once. */
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { SigningError } from '../../keys/signing-error.js';

type JsonRequest = {
  method: 'GET' | 'POST';
  url: string;
  headers: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  body?: unknown;
  signal: AbortSignal;
};

/** A whole answer; `json` is an empty object if the body is not a JSON object. */
export type JsonAnswer = { status: number; json: Readonly<Record<string, unknown>> };

export type JsonApi = {
  /** Rejects with a SigningError if there is no answer, or with the signal's reason. An answer may have any status. */
  send(request: JsonRequest): Promise<JsonAnswer>;
  close(): Promise<void>;
};

/** An attempt leaves time for another one within the 3 s of the protocol. */
const ATTEMPT_MS = 1_200;
const PAUSE_MS = 50;
const MAX_ANSWER_BYTES = 1024 * 1024;

/** Opens a client with at most `connections` connections to a host. */
export function openJsonApi(connections: number): JsonApi {
  const dispatcher = new Agent({
    connections,
    connect: { timeout: ATTEMPT_MS },
    headersTimeout: ATTEMPT_MS,
    bodyTimeout: ATTEMPT_MS,
    maxResponseSize: MAX_ANSWER_BYTES,
  });
  const sendOnce = async ({ method, url, headers, body, signal }: JsonRequest): Promise<JsonAnswer> => {
    const answer = await request(url, {
      dispatcher,
      method,
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      body: body === undefined ? null : JSON.stringify(body),
      signal,
    });
    return { status: answer.statusCode, json: parseObject(await answer.body.text()) };
  };
  return {
    // Signing twice makes no more than another signature, so that whatever failed may be repeated.
    send: async (wanted) => {
      const first = await sendOnce(wanted).catch((error: Error) => error);
      if (!(first instanceof Error) && !isTransient(first.status)) return first;
      wanted.signal.throwIfAborted();
      await delay(PAUSE_MS, undefined, { signal: wanted.signal });
      return sendOnce(wanted).catch((error: Error) => {
        wanted.signal.throwIfAborted();
        throw new SigningError(`${new URL(wanted.url).host} cannot be reached: ${reasonOf(error)}`);
      });
    },
    close: () => dispatcher.destroy(),
  };
}

function isTransient(status: number): boolean {
  return status === 429 || status >= 500;
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

function reasonOf(error: Error): string {
  // Several addresses make an error without a message.
  const { code } = error as { code?: unknown };
  return error.message || String(code);
}

const MAX_TEXT = 120;

/** A member of an answer as text, `''` if it is none. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** What a service says of an error, as the end of a line. */
export function said(value: unknown): string {
  const text = textOf(value);
  return text === '' ? '' : ` (${text.slice(0, MAX_TEXT)})`;
}
