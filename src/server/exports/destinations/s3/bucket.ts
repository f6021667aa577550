/** A bucket: the SDK's client with timeouts of requests and a maximum size of answers. */
import { pipeline, type Readable, Transform } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';
import { traceHeaders } from '../../../telemetry/spans.js';
import { DestinationError } from '../destination.js';
import { type Operation, SourceError } from './error.js';

/** Timeout of an answer after the last byte of the request: completing a large upload takes S3 minutes. */
const ANSWER_TIMEOUT_MS = 10 * 60_000;
/** Maximum size of an answer; those to exports are smaller. */
const MAX_ANSWER_BYTES = 256 * 1024;

type Sdk = typeof import('@aws-sdk/client-s3');

/** Temporary credentials. */
export type Session = {
  /** Makes sure that there is a session that does not end soon. */
  ensure: (signal: AbortSignal) => Promise<void>;
  /** Makes `ensure` get a new one. */
  forget: () => void;
};

/** An open bucket; with `partBytes` per part, objects above `multipartBytes` are uploaded in parts. */
export type Bucket = {
  readonly sdk: Sdk;
  readonly client: S3Client;
  readonly name: string;
  readonly multipartBytes: number;
  readonly partBytes: number;
  /** The uploads that hold parts in memory. */
  readonly buffered: Semaphore;
  /** The session that signs requests; undefined if a key does that cannot expire. */
  readonly session?: Session | undefined;
};

/** A counting semaphore. */
export type Semaphore = {
  /** Acquires a permit. Returns false if none is free, so that no upload waits for a slow store. */
  tryAcquire(): boolean;
  release(): void;
};

/** Creates a semaphore of `count` permits. */
export function createSemaphore(count: number): Semaphore {
  let free = count;
  return {
    tryAcquire: () => free > 0 && free-- > 0,
    release: () => {
      free++;
    },
  };
}

/** A request: its body, if it is a stream, is destroyed at the end. */
type Call = { operation: Operation; signal: AbortSignal; body?: Readable };

/**
 * Sends a request with a signal of its own, which is aborted if `signal` is, if the body cannot be read and if the answer
 * takes too long. Rejects with the SDK's error, `SourceError`, or the reason of the abort.
 */
export async function send<T>(
  { session }: Bucket,
  { operation, signal, body }: Call,
  start: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const own = new AbortController();
  const late = new DestinationError(`the store does not answer (${operation.action} ${operation.resource})`);
  let timer: NodeJS.Timeout | undefined;
  const awaitAnswer = () => {
    timer = setTimeout(() => own.abort(late), ANSWER_TIMEOUT_MS);
  };
  const abort = () => own.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  if (body === undefined) awaitAnswer();
  else body.once('end', awaitAnswer).on('error', (cause) => own.abort(new SourceError('', { cause })));
  try {
    signal.throwIfAborted();
    await session?.ensure(own.signal);
    return await start(own.signal);
  } catch (error) {
    throw own.signal.aborted ? own.signal.reason : error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
    body?.destroy();
  }
}

/** Makes the client sign the SHA-256 that a request states of its body: the SDK does not sign bodies that are streams. */
export function signBodies(client: S3Client): void {
  client.middlewareStack.add(
    (next) => (args) => {
      const { headers } = args.request as { headers: Record<string, string> };
      const checksum = headers['x-amz-checksum-sha256'];
      if (checksum !== undefined)
        headers['x-amz-content-sha256'] = Buffer.from(checksum, 'base64').toString('hex');
      return next(args);
    },
    { step: 'build', name: 'signBodies' },
  );
}

/** Makes the client send the `traceparent` of the active span. It is not signed, as proxies may change it. */
export function sendTraceparent(client: S3Client): void {
  client.middlewareStack.add(
    (next) => (args) => {
      Object.assign((args.request as { headers: Record<string, string> }).headers, traceHeaders());
      return next(args);
    },
    { step: 'deserialize', name: 'sendTraceparent' },
  );
}

/** Makes the client fail on an answer of more than 256 KiB, which the SDK would collect whole. */
export function limitAnswers(client: S3Client): void {
  client.middlewareStack.add(
    (next) => async (request) => {
      const result = await next(request);
      const response = result.response as { body?: unknown };
      if (response.body !== undefined) response.body = limit(response.body as Readable);
      return result;
    },
    // Next to the network: the SDK's own middlewares read the body.
    { step: 'deserialize', priority: 'low', name: 'limitAnswers' },
  );
}

function limit(body: Readable): Readable {
  let bytes = 0;
  const limited = new Transform({
    transform(chunk: Buffer, _encoding, callback) {
      bytes += chunk.length;
      if (bytes > MAX_ANSWER_BYTES) callback(new DestinationError("the store's answer is too large"));
      else callback(null, chunk);
    },
  });
  // The reader sees the error of the pipeline as that of `limited`.
  pipeline(body, limited, () => undefined);
  return limited;
}
