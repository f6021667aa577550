import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { createTimeoutQueue, type TimeoutQueue } from './timeout-queue.js';

/** Told once how an exchange ended; `answer` is the start of the body as text. */
export type ExchangeEnd = {
  failed(error: unknown): void;
  answered(status: number, headers: IncomingHttpHeaders, answer: string): void;
};

/** `fail` ends an exchange before its status has come, `finish` after. */
type Exchange = { fail(error: unknown): void; finish(): void };

/** Once the status is known, the start of the body is all that is left to wait for. */
const BODY_TIMEOUT_MS = 2_000;
const MAX_ANSWER_BYTES = 2_048;
const FIRST_FINAL_STATUS = 200;
/** Before the answer; a receiver could send them without end. */
const MAX_INTERIM_ANSWERS = 16;
const OVER = new Error('the exchange is over');

/** Opens exchanges, and forgets the signal. */
export type Exchanges = ReturnType<typeof createExchanges>;

/** Requests under way, none of which waits for its status longer than `timeoutMs`, or at all once `aborting`. */
export function createExchanges({ timeoutMs, aborting }: { timeoutMs: number; aborting: AbortSignal }) {
  const late = new Error(`no answer within ${timeoutMs / 1000} s`);
  const waiting = createTimeoutQueue<Exchange>(timeoutMs, (exchange) => exchange.fail(late));
  const reading = createTimeoutQueue<Exchange>(BODY_TIMEOUT_MS, (exchange) => exchange.finish());
  const giveUp = () => {
    for (const exchange of waiting.entries()) exchange.fail(aborting.reason);
  };
  aborting.addEventListener('abort', giveUp, { once: true });
  return {
    open: (ends: ExchangeEnd) => openExchange({ waiting, reading }, ends),
    close: () => aborting.removeEventListener('abort', giveUp),
  };
}

/** What bounds the wait for a status, and for the start of a body. */
type Limits = { waiting: TimeoutQueue<Exchange>; reading: TimeoutQueue<Exchange> };

/**
 * An exchange as undici is handed it. Of the body it reads the first 2 KiB, as much as comes in a moment; neither the
 * rest nor how it ends changes the outcome. What is not read to its end costs the connection.
 */
function openExchange(
  { waiting, reading }: Limits,
  ends: ExchangeEnd,
): Dispatcher.DispatchHandler & Pick<Exchange, 'fail'> {
  let isOver = false;
  let connection: Dispatcher.DispatchController | undefined;
  let start: { status: number; headers: IncomingHttpHeaders } | undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  let interim = 0;
  const end = (tell: () => void) => {
    if (isOver) return;
    isOver = true;
    waiting.delete(exchange);
    reading.delete(exchange);
    tell();
    connection?.abort(OVER);
  };
  const textOf = () => Buffer.concat(chunks).subarray(0, MAX_ANSWER_BYTES).toString('utf8');
  const exchange: Exchange = {
    fail: (error) => end(() => ends.failed(error)),
    finish: () => end(() => start && ends.answered(start.status, start.headers, textOf())),
  };
  waiting.add(exchange);
  return {
    fail: exchange.fail,
    onRequestStart: (controller) => {
      if (isOver) controller.abort(OVER);
      connection = controller;
    },
    onResponseStart: (_, status, headers) => {
      if (isOver) return;
      if (status < FIRST_FINAL_STATUS) {
        if (++interim > MAX_INTERIM_ANSWERS) exchange.fail(new Error('too many interim answers'));
        return;
      }
      start = { status, headers };
      waiting.delete(exchange);
      reading.add(exchange);
    },
    onResponseData: (_, chunk) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= MAX_ANSWER_BYTES) exchange.finish();
    },
    onResponseEnd: () => {
      connection = undefined;
      exchange.finish();
    },
    onResponseError: (_, error) => {
      connection = undefined;
      if (start === undefined) exchange.fail(error);
      else exchange.finish();
    },
  };
}
