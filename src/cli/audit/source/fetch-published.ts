/** Fetches public files of a service: trust roots, checkpoints, entries. */
import { setTimeout as pause } from 'node:timers/promises';
import { networkReason, readAtMost } from '../../input/network.js';

const TIMEOUT_MS = 15_000;
const MIB = 1024 * 1024;

/** The request failed or its response cannot be used. */
class FetchError extends Error {
  override readonly name = 'FetchError';
}

/** `what` names the file in errors. A failed request, 429 or 5xx is retried after each of `retryDelaysMs`. */
type FetchOptions = {
  what: string;
  maxBytes: number;
  fetch: typeof globalThis.fetch;
  retryDelaysMs?: readonly number[];
};

/** Fetches an address. Returns undefined on 404. Throws FetchError, which names the address. */
export async function fetchPublished(url: string, options: FetchOptions): Promise<Uint8Array | undefined> {
  for (const waitMs of options.retryDelaysMs ?? []) {
    const response = await get(url, options).catch(() => undefined);
    if (response !== undefined && !isRetryable(response)) return read(url, response, options);
    await response?.body?.cancel();
    await pause(waitMs);
  }
  return read(url, await get(url, options), options);
}

function isRetryable({ status }: Response): boolean {
  return status === 429 || status >= 500;
}

async function get(url: string, { what, fetch }: FetchOptions): Promise<Response> {
  return fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), redirect: 'error' }).catch((error: Error) => {
    throw new FetchError(`${what} cannot be fetched from ${url}: ${networkReason(error)}`);
  });
}

async function read(
  url: string,
  response: Response,
  { what, maxBytes }: FetchOptions,
): Promise<Uint8Array | undefined> {
  if (response.status === 404) return undefined;
  if (!response.ok) throw new FetchError(`${what} cannot be fetched from ${url}: HTTP ${response.status}`);
  const bytes = await readAtMost(response, maxBytes);
  if (bytes === undefined) throw new FetchError(`${what} at ${url}: larger than ${maxBytes / MIB} MiB`);
  return bytes;
}
