/** One HTTP request to a witness, bounded in time and size. */
import { type Dispatcher, request } from 'undici';
import { inRequest } from '../../telemetry/requests.js';
import { annotate, traceHeaders } from '../../telemetry/spans.js';

/**
 * - `timeout`, `aborted`, `network`: no complete response; `too_large`: over the limit
 * - `conflict`, `larger_log`: a C2SP witness knows another size of the log than we do, or a larger one: `knownSize`
 * - `inconsistent`: a C2SP witness has cosigned what the checkpoint does not continue
 * - the others: an invalid response
 */
type WitnessRequestErrorCode =
  | 'timeout'
  | 'aborted'
  | 'network'
  | 'too_large'
  | 'http_status'
  | 'content_type'
  | 'bad_answer'
  | 'conflict'
  | 'larger_log'
  | 'inconsistent'
  | 'malformed';

/** A failed request to a witness. The message is one short line without the URL's credentials or query. */
export class WitnessRequestError extends Error {
  override readonly name = 'WitnessRequestError';
  readonly knownSize: number | undefined;

  constructor(
    readonly code: WitnessRequestErrorCode,
    message: string,
    options?: ErrorOptions & { readonly knownSize?: number },
  ) {
    super(message, options);
    this.knownSize = options?.knownSize;
  }
}

type BoundedRequest = {
  url: string;
  method: 'GET' | 'POST';
  headers?: Record<string, string>;
  body?: Uint8Array;
  /** From the start of the request to the last byte of the response. */
  timeoutMs: number;
  maxBytes: number;
};

/** `contentType` is the lower-case media type without parameters, `""` when there is none. */
export type BoundedAnswer = { status: number; contentType: string; body: Uint8Array };

/** The dispatcher with the operator's proxy, TLS and connection settings; undici's default if omitted. */
export type RequestDeps = { dispatcher?: Dispatcher };

/**
 * Sends the request and reads the whole response with any status. Does not follow redirects. Throws WitnessRequestError
 * `timeout`, `aborted`, `network` or `too_large`.
 */
export function boundedRequest(
  deps: RequestDeps,
  wanted: BoundedRequest,
  signal: AbortSignal,
): Promise<BoundedAnswer> {
  return inRequest(wanted, () => exchange(deps, wanted, signal));
}

async function exchange(
  { dispatcher }: RequestDeps,
  wanted: BoundedRequest,
  signal: AbortSignal,
): Promise<BoundedAnswer> {
  const { url, method, headers, body, timeoutMs, maxBytes } = wanted;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const answer = await request(url, {
      method,
      ...(dispatcher && { dispatcher }),
      headers: { ...headers, ...traceHeaders() },
      ...(body && { body }),
      signal: AbortSignal.any([signal, timeout]),
    });
    annotate({ 'http.response.status_code': answer.statusCode });
    const contentType = mediaType(answer.headers['content-type']);
    return { status: answer.statusCode, contentType, body: await readBody(answer.body, maxBytes) };
  } catch (error) {
    if (error instanceof WitnessRequestError) throw error;
    if (signal.aborted) throw new WitnessRequestError('aborted', 'the request was aborted', { cause: error });
    if (timeout.aborted) {
      throw new WitnessRequestError('timeout', `no whole answer within ${timeoutMs} ms`, { cause: error });
    }
    throw new WitnessRequestError('network', `${hostOf(url)} cannot be asked: ${reasonOf(error)}`, {
      cause: error,
    });
  }
}

/** Throwing in the loop closes the connection. */
async function readBody(stream: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream) {
    length += chunk.length;
    if (length > maxBytes)
      throw new WitnessRequestError('too_large', `the answer has more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function mediaType(header: string | string[] | undefined): string {
  const value = Array.isArray(header) ? header[0] : header;
  return (value ?? '').split(';', 1).join('').trim().toLowerCase();
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : 'the address';
}

/** Prefers the system's error code: a message may quote the URL with its credentials. */
function reasonOf(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return error instanceof Error ? error.name : 'unknown error';
}
