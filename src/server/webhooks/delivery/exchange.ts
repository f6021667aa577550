import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { buildConnector, Dispatcher } from 'undici';

/** Called once with the outcome of an exchange; `answer` is the start of the body as text. */
type ExchangeEnd = {
  failed(error: unknown): void;
  answered(status: number, headers: IncomingHttpHeaders, answer: string): void;
};

/** `fail` ends an exchange before its status arrived, `finish` after. */
type Exchange = { fail(error: unknown): void; finish(): void };

/** Timeout of the start of the body, after the status. */
const BODY_TIMEOUT_MS = 2_000;
const MAX_ANSWER_BYTES = 2_048;
const FIRST_FINAL_STATUS = 200;
/** Maximum 1xx responses: a receiver could send them without end. */
const MAX_INTERIM_ANSWERS = 16;
const OVER = new Error('the exchange is over');

/** Opens exchanges; `close` stops listening to `aborting`. */
export type Exchanges = ReturnType<typeof createExchanges>;

/** Tracks requests in flight. A request times out after `timeoutMs` without a status, and fails when `aborting` aborts. */
export function createExchanges({ timeoutMs, aborting }: { timeoutMs: number; aborting: AbortSignal }) {
  const waiting = new Set<Exchange>();
  const abort = () => {
    for (const exchange of waiting) exchange.fail(aborting.reason);
  };
  aborting.addEventListener('abort', abort, { once: true });
  return {
    open: (ends: ExchangeEnd) => openExchange(waiting, timeoutMs, ends),
    close: () => aborting.removeEventListener('abort', abort),
  };
}

/**
 * The undici handler of an exchange, which is in `waiting` until its status arrives. Reads at most 2 KiB of the body, for a
 * short time; the rest does not change the outcome. A body that is not read to its end costs the connection.
 */
function openExchange(
  waiting: Set<Exchange>,
  timeoutMs: number,
  ends: ExchangeEnd,
): Dispatcher.DispatchHandler & Pick<Exchange, 'fail'> {
  let isOver = false;
  let connection: Dispatcher.DispatchController | undefined;
  let start: { status: number; headers: IncomingHttpHeaders } | undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  let interim = 0;
  const end = (report: () => void) => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    waiting.delete(exchange);
    report();
    connection?.abort(OVER);
  };
  const textOf = () => Buffer.concat(chunks).subarray(0, MAX_ANSWER_BYTES).toString('utf8');
  const exchange: Exchange = {
    fail: (error) => end(() => ends.failed(error)),
    finish: () => end(() => start && ends.answered(start.status, start.headers, textOf())),
  };
  const late = () => exchange.fail(new Error(`no answer within ${timeoutMs / 1000} s`));
  let timer = setTimeout(late, timeoutMs).unref();
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
      clearTimeout(timer);
      timer = setTimeout(exchange.finish, BODY_TIMEOUT_MS).unref();
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

const START = 'HTTP/1.1 100';
const END = '\r\n\r\n';
/** More bytes than this before a response are passed on, and undici rejects them: a receiver could send them without end. */
const MAX_INTERIM_BYTES = 16 * 1024;
const NOTHING = Buffer.alloc(0);

/**
 * Makes connections that drop `100 Continue` (RFC 9110, section 15.2.1) before a response: undici would reject it as a
 * bad response.
 */
export function acceptingContinue(connect: buildConnector.connector): buildConnector.connector {
  return (target, callback) =>
    connect(target, (...args) => {
      if (args[0] === null) dropContinue(args[1]);
      callback(...args);
    });
}

/** A response begins with the first bytes after a request was written; one request is in flight at a time. */
function dropContinue(socket: Socket): void {
  const read = socket.read.bind(socket);
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  let isStart = true;
  let left = MAX_INTERIM_BYTES;
  let held: Buffer = NOTHING;
  const writeAndExpect = (...args: unknown[]) => {
    isStart = true;
    left = MAX_INTERIM_BYTES;
    return write(...args);
  };
  const readAnswer = (size?: number): Buffer | null => {
    for (;;) {
      const chunk: Buffer | null = read(size);
      if (chunk === null || !isStart) return chunk;
      const before = Buffer.concat([held, chunk]);
      held = withoutContinue(before, left);
      left -= before.length - held.length;
      if (held.length === 0 || (isOpen(held) && held.length < left)) continue;
      const answer = held;
      held = NOTHING;
      isStart = false;
      return answer;
    }
  };
  Object.assign(socket, { write: writeAndExpect, read: readAnswer });
}

/** Removes every complete `100 Continue` head at the beginning that starts within `within` bytes. */
function withoutContinue(bytes: Buffer, within: number): Buffer {
  let rest = bytes;
  while (bytes.length - rest.length < within && rest.toString('latin1', 0, START.length) === START) {
    const end = rest.indexOf(END);
    if (end < 0) break;
    rest = rest.subarray(end + END.length);
  }
  return rest;
}

/** Whether the bytes so far could still become a `100 Continue` head. */
function isOpen(bytes: Buffer): boolean {
  const start = bytes.toString('latin1', 0, START.length);
  return START.startsWith(start);
}
