/** Sends the requests of Google's SDK, which are bounded and can be aborted so, as the bucket's identity. */
import type { Readable } from 'node:stream';
import type { StorageOptions } from '@google-cloud/storage';
import { DestinationError } from '../destination.js';
import type { HttpAnswer, HttpClient } from '../http-client.js';
import type { Identity } from './credentials.js';
import { type GcsSubject, toGcsError, toUploadError } from './gcs-error.js';

export type TransportDeps = { http: HttpClient; identity: Identity; subject: GcsSubject };

/** The methods of an auth client that the SDK calls. */
type SdkRequest = {
  method?: string;
  url: string;
  params?: Record<string, unknown>;
  headers?: Record<string, unknown>;
  data?: unknown;
  body?: Readable;
  responseType?: string;
};

/** An auth client for the SDK, and the first failure of its requests. */
type Transport = {
  authClient: NonNullable<StorageOptions['authClient']>;
  /** Permits requests to an endpoint. */
  allow(endpoint: string): void;
  /** The error of the first failed request. */
  failure(): unknown;
  /** Resolves when no request is under way. */
  idle(): Promise<void>;
};

/** Sends requests until `signal` is aborted. */
export function createTransport(deps: TransportDeps, signal: AbortSignal): Transport {
  const pending = new Set<Promise<unknown>>();
  let allowed = '';
  let failure: unknown;
  const request = (wanted: SdkRequest) => {
    const answered = sendRequest(deps, { signal, allowed }, wanted).catch((error) => {
      failure ??= error;
      throw error;
    });
    pending.add(answered);
    return answered.finally(() => pending.delete(answered));
  };
  return {
    // Of an AuthClient the SDK calls no more than this.
    authClient: { request } as unknown as Transport['authClient'],
    allow: (endpoint) => {
      allowed = endpoint;
    },
    failure: () => failure,
    idle: async () => void (await Promise.allSettled(pending)),
  };
}

async function sendRequest(
  { http, identity, subject }: TransportDeps,
  { signal, allowed }: { signal: AbortSignal; allowed: string },
  { method = 'GET', params = {}, data, body, responseType, ...wanted }: SdkRequest,
) {
  const url = new URL(wanted.url);
  if (url.origin !== new URL(allowed).origin)
    throw new DestinationError('Google names another host for an upload');
  for (const [name, value] of Object.entries(params)) url.searchParams.set(name, String(value));
  const headers = {
    ...Object.fromEntries(Object.entries(wanted.headers ?? {}).map(([name, value]) => [name, String(value)])),
    ...(data !== undefined && { 'content-type': 'application/json' }),
    ...(await identity.authorise(signal)),
  };
  const content = body ?? (data === undefined ? undefined : JSON.stringify(data));
  const answer = await http.send({ method, url: url.href, headers, body: content, signal });
  if (answer.status === 401) identity.forget();
  const isMissing = answer.status === 404 && method === 'GET';
  // The object's bytes are sent by PUT, to the address of an upload that a POST has begun.
  const toError = method === 'PUT' ? toUploadError : toGcsError;
  if (!isSuccess(answer) && !isMissing) throw toError(answer, subject);
  const parsed =
    responseType === 'arraybuffer' ? answer.bytes : responseType === 'text' ? answer.body : parseData(answer);
  return { status: answer.status, statusText: '', headers: answer.headers, data: parsed };
}

/** 308 asks for the next chunk of an upload. */
function isSuccess({ status }: HttpAnswer): boolean {
  return (status >= 200 && status < 300) || status === 308;
}

function parseData({ body }: HttpAnswer): unknown {
  if (body === '') return {};
  try {
    return Object(JSON.parse(body));
  } catch {
    throw new DestinationError('Google sent an answer that is not JSON');
  }
}
