/** One HTTP request to a registry, of bounded size and time. */
import { FormatError } from '../../proof/bytes/format-error.js';
import { parseJsonText } from '../../proof/verify/read/json-text.js';
import { networkReason, readAtMost } from '../input/network.js';

/** A request; `maxBytes` bounds the answer, whose body is not read if it is 0. */
export type HttpRequest = {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT';
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array<ArrayBuffer>;
  readonly maxBytes?: number;
};

/** The answer to a request to `url`. `json` is the body as an object, undefined if it is none. */
export type Answer = {
  readonly url: URL;
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
  json(): Readonly<Record<string, unknown>> | undefined;
};

/** Dependencies of requests; `timeoutMs` is for each, with its body. */
export type Network = { readonly fetch: typeof globalThis.fetch; readonly timeoutMs: number };

const MIB = 1024 * 1024;
/** Of answers that are errors. */
const MAX_ERROR_BYTES = MIB;

/** Sends a request and follows no redirect. Throws an error that names the host. */
export async function sendOnce({ fetch, timeoutMs }: Network, request: HttpRequest): Promise<Answer> {
  const { method, url, headers = {}, body, maxBytes = 0 } = request;
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const init = { method, headers, signal, redirect: 'manual', ...(body && { body }) } as const;
    const response = await fetch(url.href, init);
    const limit = response.ok ? maxBytes : MAX_ERROR_BYTES;
    if (limit === 0 || method === 'HEAD') await response.body?.cancel();
    const read = limit === 0 || method === 'HEAD' ? new Uint8Array() : await readAtMost(response, limit);
    if (read === undefined) throw new TooLargeError(`answers with more than ${limit / MIB} MiB`);
    const json = () => objectOf(read);
    return { url, status: response.status, headers: response.headers, body: read, json };
  } catch (error) {
    if (error instanceof TooLargeError) throw new Error(`${url.host} ${error.message}`);
    const reason = signal.aborted ? `no answer in ${timeoutMs / 1000} s` : networkReason(error as Error);
    throw new Error(`${url.host} cannot be reached: ${reason}`, { cause: error });
  }
}

class TooLargeError extends Error {}

function objectOf(bytes: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = parseJsonText(bytes, bytes.length);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch (error) {
    if (error instanceof FormatError) return undefined;
    throw error;
  }
}
