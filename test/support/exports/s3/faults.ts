/** What a test makes the server do wrong. */
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { S3Error } from './s3-error.js';

/** A request that the server has seen. */
export type SeenRequest = {
  /** As the SDK names it: `PutObject`. */
  operation: string;
  method: string;
  bucket: string;
  key: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  /** Empty until the signature is verified. */
  accessKeyId: string;
  /** The bytes of the body that were read. */
  bytes: number;
  /** The status of the answer; 0 if there was none. */
  status: number;
};

export type Fault =
  /** Answers an error: by default the status of the code. */
  | { kind: 'refuse'; code: string; status?: number; headers?: Record<string, string> }
  /** Answers as the function does, without reading the body. */
  | { kind: 'answer'; with: (response: ServerResponse) => void }
  /** Reads nothing and never answers. */
  | { kind: 'hang' }
  /** Waits, before it reads the body, for the promise. */
  | { kind: 'hold'; until: Promise<unknown> }
  /** Reads that many bytes a second of the body. */
  | { kind: 'throttle'; bytesPerSecond: number }
  /** Ends the connection after that many bytes of the body. */
  | { kind: 'cut'; afterBytes: number }
  /** Does what was asked, and ends the connection without an answer. */
  | { kind: 'cut-answer' };

/** Decides by request; undefined if all goes well. */
export type Faults = (request: SeenRequest) => Fault | undefined;

/** The store has no space. */
export const FULL: Fault = { kind: 'refuse', code: 'QuotaExceeded' };

/** The error of a refusal. */
export function refusalOf({ code, status, headers }: Extract<Fault, { kind: 'refuse' }>): S3Error {
  const options = { ...(status !== undefined && { status }), ...(headers !== undefined && { headers }) };
  return new S3Error(code, `A fault of the test: ${code}.`, options);
}

/** The connection ends here. */
export class Cut extends Error {}

const SLICES_PER_SECOND = 20;

/** The body as a fault lets it through, counted in `request`. */
export async function* faultyBody(
  source: AsyncIterable<Buffer>,
  fault: Fault | undefined,
  request: SeenRequest,
): AsyncGenerator<Buffer> {
  const limit = fault?.kind === 'cut' ? fault.afterBytes : Number.POSITIVE_INFINITY;
  for await (const chunk of fault?.kind === 'throttle' ? slowly(source, fault.bytesPerSecond) : source) {
    request.bytes += chunk.length;
    if (request.bytes >= limit) throw new Cut();
    yield chunk;
  }
}

async function* slowly(source: AsyncIterable<Buffer>, bytesPerSecond: number): AsyncGenerator<Buffer> {
  const sliceBytes = Math.max(1, Math.floor(bytesPerSecond / SLICES_PER_SECOND));
  for await (const chunk of source) {
    for (let start = 0; start < chunk.length; start += sliceBytes) {
      const slice = chunk.subarray(start, start + sliceBytes);
      // A test may end before the body does.
      await delay((slice.length / bytesPerSecond) * 1000, undefined, { ref: false });
      yield slice;
    }
  }
}
