import { createConnectTransport } from '@connectrpc/connect-web';
import type { Caller } from './call.js';
import { findEnvFetch } from './env-fetch.js';
import type { AttestationError } from './error.js';
import {
  ANYTHING,
  COUNT,
  checkOptions,
  FUNCTION,
  type OptionChecks,
  STRING,
  TIMEOUT,
} from './input/options.js';
import { type ExchangeOptions, exchangedKey } from './keys/exchanged-key.js';
import { fixedKey } from './keys/key-source.js';
import { VERSION } from './version.js';

/** Options of a client. One of `apiKey` and `identityToken` is needed; the others are for unusual environments and tests. */
export type ClientOptions = ExchangeOptions & {
  /** URL of the service, for example `https://attest.example.com`. */
  readonly baseUrl: string;
  /** The API key; or else `identityToken`. */
  readonly apiKey?: string;
  /** Timeout of each attempt in milliseconds; 30,000 by default. */
  readonly timeoutMs?: number;
  /** Retries after the first attempt; 4 by default, 0 for none. */
  readonly maxRetries?: number;
  /** Your program, as in `my-pipeline/2.1`: precedes the library's name in `User-Agent`. Ignored in browsers. */
  readonly userAgent?: string;
  /**
   * Replaces fetch. By default it is the global one; in Node one that goes by `HTTPS_PROXY`, `NO_PROXY` and
   * `ATTEST_CA_FILE` where they are set.
   */
  readonly fetch?: typeof globalThis.fetch;
  /** Returns the time in milliseconds since 1970. */
  readonly now?: () => number;
  /** Returns a random number from 0, below 1. */
  readonly random?: () => number;
  /** Called before each retry with the error and the delay in milliseconds. */
  readonly onRetry?: (error: AttestationError, delayMs: number) => void;
  /** Waits for `ms` milliseconds. Rejects with the signal's reason if it aborts. */
  readonly delay?: (ms: number, signal?: AbortSignal) => Promise<void>;
};

const OPTIONS: OptionChecks<ClientOptions> = {
  baseUrl: STRING,
  apiKey: ANYTHING,
  identityToken: FUNCTION,
  projectId: STRING,
  environment: STRING,
  timeoutMs: TIMEOUT,
  maxRetries: COUNT,
  userAgent: STRING,
  fetch: FUNCTION,
  now: FUNCTION,
  random: FUNCTION,
  onRetry: FUNCTION,
  delay: FUNCTION,
};

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_RETRIES = 4;
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

/** Creates the caller. Throws TypeError if an option is unknown or malformed, or a variable of the environment. */
export function createCaller(options: ClientOptions): Caller {
  checkOptions(options, OPTIONS);
  if (!isHttpAddress(options.baseUrl)) {
    throw new TypeError('baseUrl must be an http or https address, as in https://attest.example.com');
  }
  if (options.identityToken === undefined) assertApiKey(options.apiKey);
  const fetch = options.fetch ?? findEnvFetch();
  const keyless = {
    transport: createConnectTransport({
      baseUrl: options.baseUrl.replace(/\/+$/, ''),
      useBinaryFormat: true,
      ...(fetch && { fetch }),
    }),
    headers: userAgentHeader(options.userAgent),
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    maxRetries: options.maxRetries ?? DEFAULT_RETRIES,
    now: options.now ?? Date.now,
    random: options.random ?? Math.random,
    delay: options.delay ?? wait,
    onRetry: options.onRetry ?? (() => {}),
  };
  const { apiKey, identityToken } = options;
  return { ...keyless, key: identityToken === undefined ? fixedKey(apiKey) : exchangedKey(keyless, options) };
}

function assertApiKey(apiKey: unknown): void {
  if (typeof apiKey === 'string' && VISIBLE_ASCII.test(apiKey)) return;
  throw new TypeError('apiKey is not an API key: is the variable that it is read from set?');
}

function isHttpAddress(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

/** Empty in browsers: they send their own, and another one would cost a CORS preflight. */
function userAgentHeader(caller: string | undefined): Record<string, string> {
  if (caller !== undefined && !/^[\x20-\x7e]+$/.test(caller)) throw new TypeError('userAgent is not ASCII');
  const node = globalThis.process?.versions?.node;
  if (node === undefined) return {};
  const own = `attestation-service-client/${VERSION} node/${node}`;
  return { 'user-agent': caller === undefined ? own : `${caller} ${own}` };
}

function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', abort, { once: true });
  });
}
