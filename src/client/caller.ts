import { createConnectTransport } from '@connectrpc/connect-web';
import type { Caller } from './call.js';
import type { AttestationError } from './error.js';
import { VERSION } from './version.js';

/** Where the service is, and how it is called. What is optional is there for tests and unusual places. */
export type ClientOptions = {
  /** For example `https://attest.example.com`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Of each attempt; 30 s when left out. */
  readonly timeoutMs?: number;
  /** Attempts after the first; 4 when left out, 0 for none. */
  readonly maxRetries?: number;
  /** Who is calling, as in `my-pipeline/2.1`: put before the library's own name in `User-Agent`. Not in a browser. */
  readonly userAgent?: string;
  /** Instead of the global one; with undici's and a dispatcher, through a proxy. */
  readonly fetch?: typeof globalThis.fetch;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** From 0 up to 1. */
  readonly random?: () => number;
  /** Told of each failure that is tried again, and after how many milliseconds. */
  readonly onRetry?: (error: AttestationError, delayMs: number) => void;
  /** Waits; rejects with the signal's reason when it aborts. */
  readonly delay?: (ms: number, signal?: AbortSignal) => Promise<void>;
};

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_RETRIES = 4;
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

/** What makes the calls. Throws TypeError on an address, key or agent that cannot be one. */
export function createCaller(options: ClientOptions): Caller {
  if (!isHttpAddress(options.baseUrl)) {
    throw new TypeError('baseUrl must be an http or https address, as in https://attest.example.com');
  }
  if (typeof options.apiKey !== 'string' || !VISIBLE_ASCII.test(options.apiKey)) {
    throw new TypeError('apiKey is not an API key: is the variable that it is read from set?');
  }
  return {
    transport: createConnectTransport({
      baseUrl: options.baseUrl.replace(/\/+$/, ''),
      useBinaryFormat: true,
      ...(options.fetch && { fetch: options.fetch }),
    }),
    headers: { authorization: `Bearer ${options.apiKey}`, ...userAgentHeader(options.userAgent) },
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    maxRetries: options.maxRetries ?? DEFAULT_RETRIES,
    now: options.now ?? Date.now,
    random: options.random ?? Math.random,
    delay: options.delay ?? wait,
    onRetry: options.onRetry ?? (() => {}),
  };
}

function isHttpAddress(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

/** A browser names itself; to be told another name it would have to ask the service first. */
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
