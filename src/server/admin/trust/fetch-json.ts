import { Agent, request } from 'undici';
import { type GuardOptions, guardedConnector } from '../../net/destination.js';

/** Reads JSON from the host of an issuer. Rejects if that is not an allowed destination, or does not answer in time. */
export type FetchJson = (url: string) => Promise<unknown>;

const TIMEOUT_MS = 5_000;
const MAX_BYTES = 256 * 1024;
const CONNECTIONS = 4;

/** Creates the client of issuers; without a guard it may call every address. It follows no redirects. */
export function createFetchJson(guard: GuardOptions | undefined): FetchJson {
  const dispatcher = new Agent({
    ...(guard !== undefined && { connect: guardedConnector(guard) }),
    connections: CONNECTIONS,
    maxResponseSize: MAX_BYTES,
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
    keepAliveTimeout: 1_000,
  });
  return async (url) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const { statusCode, body } = await request(url, {
      dispatcher,
      signal,
      headers: { accept: 'application/json' },
    });
    if (statusCode !== 200) {
      await body.dump();
      throw new Error(`${url} answered ${statusCode}`);
    }
    return JSON.parse(await body.text());
  };
}
