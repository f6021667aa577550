import type { Message } from '@bufbuild/protobuf';
import { ConnectError } from '@connectrpc/connect';
import { ApiError, deadlineExceeded, internalError, unavailable } from '../../core/errors.js';
import type { Logger } from '../../core/logger.js';
import type { PublicCall, PublicRpc } from '../../core/public-rpc.js';
import { ClientGone, type HoldResponse, unsupported } from '../socket/bodies.js';
import type { Limits } from '../socket/limits.js';
import type { RequestRecord } from '../socket/requests.js';
import { plainStatus } from './connect-error.js';
import {
  findFormat,
  findStreamFormat,
  type MessageFormat,
  type MessageRules,
  parseMessage,
  protocolOf,
  readBodyMessage,
} from './messages.js';
import { createPublicOutput, type PublicOutput } from './public-output.js';
import { otherMethod, refusalResponse, refuseFormat, statusResponse } from './refusal.js';
import { successResponse, writeRpcResponse } from './response.js';
import { readTimeout, startDeadline } from './rpc-deadline.js';
import { answerEach } from './stream-request.js';
import { createStreamResponse, type StreamResponse } from './stream-response.js';

type PublicRpcDeps = {
  rpcs: readonly PublicRpc[];
  limits: Limits;
  log: Logger;
  /** Counts the bytes of responses until they are sent. */
  holdResponse: HoldResponse;
  /** Aborted when the server begins to close: ends streams that would not end by themselves. */
  closing: AbortSignal;
};

/** The RPCs that anyone may call, on Connect, gRPC and gRPC-Web. */
export type PublicRpcs = {
  find: (path: string) => PublicRpc | undefined;
  /** Responds to a request for an RPC. Never rejects. */
  handle: (rpc: PublicRpc, record: RequestRecord) => Promise<void>;
};

type State = PublicRpcDeps & {
  output: PublicOutput;
  /** Functions that end each open stream when the server closes. */
  open: Set<() => void>;
};

const METHODS = ['POST'];
/** A stream whose client streams ends in order before the request's own time limit would reset it. */
const BEFORE_RESET = 0.9;
const RETRY_SECONDS = 1;
const NO_HEADERS: ReadonlyMap<string, string> = new Map();

/**
 * Bounds what anyone may call: the size of a message, how many streams are open at once, how long each is, how many
 * messages a client sends on it, and the bytes that its address is sent. One that has to end, also because the server
 * closes, ends with UNAVAILABLE, so that clients come back, and one with too many messages with `request.too_large`.
 */
export function createPublicRpcs(deps: PublicRpcDeps): PublicRpcs {
  const byPath = new Map(deps.rpcs.map((rpc) => [rpc.path, rpc]));
  const output = createPublicOutput(() => performance.now());
  const state = { ...deps, output, open: new Set<() => void>() };
  deps.closing.addEventListener('abort', () => {
    for (const end of state.open) end();
  });
  return {
    find: (path) => byPath.get(path),
    async handle(rpc, record) {
      const type = record.req.headers['content-type'];
      record.protocol = protocolOf(type);
      if (record.req.method !== 'POST') return otherMethod(METHODS, record);
      const format = rpc.kind === 'unary' ? findFormat(type) : findStreamFormat(type);
      if (format === undefined) return refuseFormat(record);
      if (rpc.kind === 'unary') await answerOnce(state, rpc, record, format);
      else await converse(state, rpc, record, format);
    },
  };
}

async function answerOnce(
  state: State,
  rpc: PublicRpc & { kind: 'unary' },
  record: RequestRecord,
  format: MessageFormat,
): Promise<void> {
  const deadline = startDeadline(record, () => refuse(state, record, deadlineExceeded()));
  const call = callOf(state, deadline.signal);
  try {
    deadline.assertOpen();
    const message = await readOne(state, rpc, record, format);
    const response = await rpc.answer(message as never, call);
    const success = { record, responseHeaders: NO_HEADERS, format, isGzip: false, rateHeaders: [] };
    writeRpcResponse(record, await successResponse(success, rpc.output, response));
  } catch (error) {
    refuse(state, record, error);
  } finally {
    deadline.stop();
  }
}

async function readOne(
  { limits }: State,
  rpc: PublicRpc,
  { req }: RequestRecord,
  format: MessageFormat,
): Promise<Message> {
  assertPlain(req.headers[format.encodingHeader], format);
  const { message } = await readBodyMessage(req, format, rulesOf(rpc, limits), () => {});
  return message;
}

/** Decompressing costs more than a stranger's message. */
function assertPlain(encoding: string | string[] | undefined, { acceptHeader }: MessageFormat): void {
  if (encoding === undefined || encoding === 'identity') return;
  throw unsupported('the message must not be compressed', { [acceptHeader]: 'identity' });
}

function rulesOf({ input }: PublicRpc, { maxPublicBytes }: Limits): MessageRules {
  const bound = { maxBytes: maxPublicBytes, maxValues: maxPublicBytes, listBytes: 0 };
  return { desc: input, bound, checkValues: undefined, readItems: undefined };
}

function callOf({ closing }: State, signal: () => AbortSignal): PublicCall {
  return { isClosing: () => closing.aborted, signal };
}

/** Rejects a unary call, unless it has a response. */
function refuse(state: State, record: RequestRecord, thrown: unknown): void {
  const error = asError(state, record, thrown);
  if (error === undefined || record.res.writableEnded) return;
  if (error instanceof ApiError) writeRpcResponse(record, refusalResponse(record, error));
  else writeRpcResponse(record, statusResponse(record, plainStatus(error, record.requestId)));
}

/** The error of a failure for the caller; undefined if the caller has disconnected. */
function asError(
  { log }: State,
  { requestId }: RequestRecord,
  thrown: unknown,
): ApiError | ConnectError | undefined {
  if (thrown instanceof ClientGone) return undefined;
  if (thrown instanceof ApiError || thrown instanceof ConnectError) return thrown;
  log.error({ err: thrown, request_id: requestId }, 'a call failed');
  return internalError(requestId, thrown);
}

type Stream = { state: State; record: RequestRecord; format: MessageFormat; response: StreamResponse };

async function converse(
  state: State,
  rpc: PublicRpc & { kind: 'server_streaming' | 'bidi_streaming' },
  record: RequestRecord,
  format: MessageFormat,
): Promise<void> {
  const { limits, holdResponse, open, closing } = state;
  // Only where something asks for it: making and aborting one takes 16 µs.
  const over = rpc.kind === 'server_streaming' ? new AbortController() : undefined;
  let timer: NodeJS.Timeout | undefined;
  const onEnd = () => {
    clearTimeout(timer);
    open.delete(onClosing);
    over?.abort();
  };
  const onSent = (bytes: number) => state.output.spend(record.peer, bytes);
  const response = createStreamResponse({ record, format, desc: rpc.output, holdResponse, onSent, onEnd });
  const onClosing = () => {
    // A server's stream still sends its last word.
    if (rpc.kind === 'bidi_streaming') response.end(serverIsClosing());
    else over?.abort();
  };
  const timeout = readTimeout(record.req.headers, format.protocol === 'connect');
  if (open.size >= limits.maxOpenStreams) {
    return response.end(unavailable('too many streams are open', RETRY_SECONDS));
  }
  if (timeout instanceof ApiError) return response.end(timeout);
  const limitMs = rpc.kind === 'bidi_streaming' ? limits.requestTimeoutMs * BEFORE_RESET : limits.maxStreamMs;
  const isOwn = timeout !== undefined && timeout < limitMs;
  const late = () => (isOwn ? deadlineExceeded() : openTooLong());
  timer = setTimeout(() => response.end(late()), isOwn ? timeout : limitMs);
  open.add(onClosing);
  // Of a client that cancels, nothing else ends the stream.
  record.res.once('close', onEnd);
  const stream = { state, record, format, response };
  if (rpc.kind === 'server_streaming')
    await sendAll(
      stream,
      rpc,
      callOf(state, () => (over as AbortController).signal),
    );
  else if (closing.aborted) onClosing();
  else answerAll(stream, rpc);
}

async function sendAll(
  { state, record, format, response }: Stream,
  rpc: PublicRpc & { kind: 'server_streaming' },
  call: PublicCall,
): Promise<void> {
  try {
    const request = await readOne(state, rpc, record, format);
    for await (const message of rpc.answer(request as never, call)) {
      if (response.isOver()) return;
      response.send(message);
    }
    response.end(call.isClosing() ? serverIsClosing() : undefined);
  } catch (error) {
    response.end(asError(state, record, error));
  }
}

function answerAll(
  { state, record, format, response }: Stream,
  rpc: PublicRpc & { kind: 'bidi_streaming' },
): void {
  const { req, res } = record;
  const rules = rulesOf(rpc, state.limits);
  const fail = (error: unknown) => response.end(asError(state, record, error));
  try {
    assertPlain(req.headers[format.encodingHeader], format);
  } catch (error) {
    fail(error);
    return;
  }
  answerEach({
    req,
    res,
    response,
    maxBytes: rules.bound.maxBytes,
    maxMessages: state.limits.maxStreamMessages,
    parse: (bytes) => {
      if (state.output.isSpent(record.peer)) throw sentTooMuch();
      return parseMessage(bytes, format, rules);
    },
    answer: rpc.open() as (request: Message) => Message,
    fail,
  });
}

function sentTooMuch(): ApiError {
  return unavailable('too much was sent to this address without credentials', RETRY_SECONDS);
}

function openTooLong(): ApiError {
  return unavailable('the stream has been open as long as it may', RETRY_SECONDS);
}

function serverIsClosing(): ApiError {
  return unavailable('the server is closing', RETRY_SECONDS);
}
