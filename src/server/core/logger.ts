import {
  type DestinationStream,
  destination as openDestination,
  type Logger as PinoLogger,
  pino,
} from 'pino';
import { type LogRelay, traceMembers } from '../telemetry/log-relay.js';

/** Writes JSON lines: `log.info({ field }, 'what happened')`. */
export type Logger = PinoLogger;

type LoggerOptions = {
  level: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';
  /** The destination of lines instead of a file descriptor. */
  destination?: DestinationStream;
  /** The file descriptor that lines are written to, buffered. Default: standard output. */
  fd?: 1 | 2;
  /** Gets every line as well; lines have the active trace then. */
  relay?: LogRelay | undefined;
};

/** Lines are written in blocks: a write per line costs a tenth of a process at 10,000 requests a second. */
const BLOCK_BYTES = 4000;
/** A write to a pipe is not mixed with those of other processes up to here (PIPE_BUF of Linux); lines are kept whole. */
const WRITE_BYTES = 4096;
const FLUSH_MS = 200;
/** One ends with up to BLOCK_BYTES unwritten, which are at most two writes. */
const FLUSHES = 3;

/** Members that may hold a credential, at the top level of a line or one below. */
const SECRET_MEMBERS = ['authorization', 'token', 'secret', 'password', 'apiKey', 'cookie'];

/**
 * Creates a logger of one JSON line per event: `level` as a word, `time` as RFC 3339. Of an error given as `err` it
 * writes type, message, code, stack and causes, but no other members: drivers put row values there.
 */
export function createLogger({ level, destination, fd = 1, relay }: LoggerOptions): Logger {
  const out = destination ?? openFile(fd);
  return pino(
    {
      level,
      base: { pid: process.pid },
      formatters: { level: (label) => ({ level: label }) },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: describeError },
      ...(relay === undefined ? {} : { mixin: traceMembers }),
      redact: {
        paths: SECRET_MEMBERS.flatMap((name) => [name, `*.${name}`]),
        censor: '[redacted]',
      },
    },
    relay === undefined ? out : relayed(out, relay),
  );
}

function openFile(fd: 1 | 2): DestinationStream {
  return openDestination({
    dest: fd,
    sync: false,
    minLength: BLOCK_BYTES,
    maxWrite: WRITE_BYTES,
    periodicFlush: FLUSH_MS,
    mkdir: false,
  });
}

function relayed(out: DestinationStream & { flush?: (done: () => void) => void }, relay: LogRelay) {
  return {
    write: (line: string) => {
      out.write(line);
      relay.take?.(line);
    },
    flush: (done: () => void) => (out.flush === undefined ? done() : out.flush(done)),
  };
}

/** Flushes the buffer. Resolves when the operating system has the lines. */
export async function flushLogger(log: Logger): Promise<void> {
  for (let i = 0; i < FLUSHES; i++) await new Promise<void>((resolve) => log.flush(() => resolve()));
}

type ErrorDescription = {
  type: string;
  message: string;
  code?: string;
  stack?: string;
  cause?: ErrorDescription;
};

const MAX_CAUSES = 5;

function describeError(error: unknown, depth = 0): ErrorDescription {
  if (!(error instanceof Error)) return { type: typeof error, message: String(error) };
  const { code, cause } = error as Error & { code?: unknown };
  return {
    type: error.name,
    message: error.message,
    ...(typeof code === 'string' ? { code } : {}),
    ...(error.stack === undefined ? {} : { stack: error.stack }),
    ...(cause === undefined || depth === MAX_CAUSES ? {} : { cause: describeError(cause, depth + 1) }),
  };
}
