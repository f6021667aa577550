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

/** The timeouts of a status and of the start of a body. */
type Limits = { waiting: TimeoutQueue<Exchange>; reading: TimeoutQueue<Exchange> };

/**
 * The undici handler of an exchange. Reads at most 2 KiB of the body, for a short time; the rest does not change the
 * outcome. A body that is not read to its end costs the connection.
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

/** Entries with one common timeout. */
type TimeoutQueue<T> = {
  /** The entries that were neither deleted nor expired, oldest first. */
  entries(): Iterable<T>;
  add(entry: T): void;
  delete(entry: T): void;
};

/**
 * Calls `expire` for each entry not deleted within `ms`. Entries expire in insertion order, so one timer serves all of
 * them; a timer per request cost a busy sender more than its signatures.
 */
function createTimeoutQueue<T>(ms: number, expire: (entry: T) => void): TimeoutQueue<T> {
  const untilMs = new Map<T, number>();
  let isArmed = false;
  const look = () => {
    isArmed = false;
    const nowMs = performance.now();
    for (const [entry, endMs] of untilMs) {
      if (endMs > nowMs) {
        arm(endMs - nowMs);
        return;
      }
      untilMs.delete(entry);
      expire(entry);
    }
  };
  const arm = (delayMs: number) => {
    if (isArmed) return;
    isArmed = true;
    setTimeout(look, delayMs).unref();
  };
  return {
    entries: () => untilMs.keys(),
    add: (entry) => {
      untilMs.set(entry, performance.now() + ms);
      arm(ms);
    },
    delete: (entry) => void untilMs.delete(entry),
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
