import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { Call } from '../../core/call.js';
import { ApiError, unavailable } from '../../core/errors.js';
import { type ByteBudget, createByteBudget, type Share } from './byte-budget.js';
import type { NodeRequest, NodeResponse, RequestRecord } from './requests.js';

/** The client disconnected before its request was complete. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/** Reserves memory for bytes of a request's body; throws if none is left. It is released when the response closes. */
export type HoldBytes = (count: number) => void;

/** The body's length by the headers: 0 if there is none, undefined if they do not tell. */
export function bodyLength(req: NodeRequest): number | undefined {
  const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
  if (coding !== undefined) return undefined;
  if (length !== undefined) return Number(length);
  // HTTP/1.1 without either has no body (RFC 9112, 6.3); HTTP/2 says so with its headers.
  return 'stream' in req && !req.stream.endAfterHeaders ? undefined : 0;
}

/**
 * The whole body if it came with the headers, as small ones do: at once, where a stream takes two more ticks and a listener
 * for each of its events. Undefined if it has to be read as a stream. Throws `tooMuch()` if it is longer than `maxBytes`.
 */
export function takeReceived(
  req: NodeRequest,
  maxBytes: number,
  tooMuch: () => Error,
  hold: HoldBytes,
): Uint8Array | undefined {
  // With `Expect: 100-continue`, 100 is sent when the stream is read.
  if (!req.complete || req.headers.expect !== undefined) return undefined;
  const size = req.readableLength;
  if (size === 0) return undefined;
  if (size > maxBytes) throw tooMuch();
  hold(size);
  return req.read() as Buffer;
}

/** Reads a whole body. Rejects with `tooMuch()` if it is longer than `maxBytes`, and with ClientGone. */
export function readStream(
  req: NodeRequest,
  maxBytes: number,
  tooMuch: () => Error,
  hold: HoldBytes,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) return settle(() => reject(tooMuch()));
      try {
        hold(chunk.length);
        chunks.push(chunk);
      } catch (error) {
        settle(() => reject(error));
      }
    };
    const onEnd = () =>
      settle(() => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    // A request closes after its end as well, but then nobody listens any more.
    const onClose = () => settle(() => reject(new ClientGone()));
    const settle = (how: () => void) => {
      req.off('data', onData).off('end', onEnd).off('close', onClose);
      how();
    };
    req.on('data', onData).on('end', onEnd).on('close', onClose);
    // A stream of HTTP/2 ends by itself if nothing is in it.
    if (req.readableEnded) onEnd();
    else if (req.destroyed) onClose();
  });
}

/** The error of a body that exceeds its bound. */
export function tooLarge(maxBytes: number): ApiError {
  return new ApiError(ErrorCode.REQUEST_TOO_LARGE, `the body is larger than ${maxBytes} bytes`);
}

/** The error of an unsupported media type or encoding; `headers` name the supported ones. */
export function unsupported(message: string, headers: Record<string, string>): ApiError {
  return new ApiError(ErrorCode.REQUEST_UNSUPPORTED_MEDIA_TYPE, message, {}, headers);
}

/** A request that holds memory: its response, whose end releases it, and its call, whose API key it counts for. */
export type Holder = { res: NodeResponse; call: Call };

/** The names of shares that are no API key's and no address's. */
const ALL = 'all';
const WITHOUT_KEY = 'without a key';

/** Maximum part of one API key, so that none starves the others. */
const SHARE_OF_A_KEY = 0.25;
const RETRY_SECONDS = 1;

/**
 * Bounds the bytes of all request bodies in memory, from their arrival until the responses close: throws
 * `service.unavailable` beyond `maxBytes`, or a key's part of it. Adds them to the call's `bodyBytes`. `refuseUnread` is called
 * before a body is read.
 */
export function createBodyMemory(
  maxBytes: number,
  refuseUnread: (call: Call) => void,
): (holder: Holder) => HoldBytes {
  const budget = createByteBudget();
  return ({ res, call }) => {
    refuseUnread(call);
    const ofKey = { name: call.principal?.id ?? WITHOUT_KEY, max: maxBytes * SHARE_OF_A_KEY };
    const hold = holdBody(budget, res, [{ name: ALL, max: maxBytes }, ofKey]);
    return (count) => {
      hold(count);
      call.bodyBytes += count;
    };
  };
}

/** Holds bytes of a request's body in each of some shares. Throws `service.unavailable` if one has too few left. */
export function holdBody(budget: ByteBudget, res: NodeResponse, shares: readonly Share[]): HoldBytes {
  const add = budget.open(res, shares);
  return (count) => {
    if (shares.some(({ name, max }) => budget.held(name) + count > max))
      throw unavailable('too many request bodies are being received', RETRY_SECONDS);
    add(count);
  };
}

/** A response and its caller. */
type HeldResponse = Pick<RequestRecord, 'res' | 'call' | 'peer'>;

/**
 * Counts the bytes of a response until it closes. Throws `service.unavailable` if none are left, except for
 * calls with side effects: they are done already, and their callers need the response.
 */
export type HoldResponse = (answered: HeldResponse, bytes: number) => void;

type ResponseMemory = {
  holdResponse: HoldResponse;
  /** Refuses a batch, before it is read, whose API key has its part of unread responses: its own cannot be refused later. */
  refuseUnread: (call: Call) => void;
};

/** Responses of at most this size are bounded by the number of open requests. */
const UNCOUNTED_BYTES = 64 * 1024;
/** No API key gets more than this part, and no address without one. */
const SHARE_OF_ONE = 0.25;
/** All callers without an API key together get no more than this part. */
const SHARE_WITHOUT_KEY = 0.5;

/**
 * Bounds the bytes of all large responses that are serialised and not yet read by their clients. A caller that holds none
 * gets a response larger than its part. One without an API key counts for its address.
 */
export function createResponseMemory(maxBytes: number): ResponseMemory {
  const budget = createByteBudget();
  const total = { name: ALL, max: maxBytes };
  const one = (name: string) => ({ name, max: maxBytes * SHARE_OF_ONE });
  const sharesOf = ({ peer, call }: HeldResponse): Share[] => {
    const apiKeyId = call?.principal?.id;
    if (apiKeyId !== undefined) return [total, one(apiKeyId)];
    const strangers = { name: WITHOUT_KEY, max: maxBytes * SHARE_WITHOUT_KEY };
    return peer === undefined ? [total, strangers] : [total, strangers, one(peer)];
  };
  const refuseUnread = ({ rules, principal }: Call) => {
    if (rules.batchOf === '' || principal === undefined) return;
    if (budget.held(principal.id) > maxBytes * SHARE_OF_ONE) throw tooManyUnread();
  };
  const holdResponse: HoldResponse = (answered, bytes) => {
    if (bytes <= UNCOUNTED_BYTES || isOver(answered.res)) return;
    const shares = sharesOf(answered);
    const isFull = shares.some(({ name, max }) => {
      const before = budget.held(name);
      return before > 0 && before + bytes > max;
    });
    if (isFull && !hasSideEffects(answered)) throw tooManyUnread();
    budget.open(answered.res, shares)(bytes);
  };
  return { holdResponse, refuseUnread };
}

function tooManyUnread(): ApiError {
  return unavailable('too many large answers wait to be read', RETRY_SECONDS);
}

function hasSideEffects({ call }: HeldResponse): boolean {
  if (call === undefined || call.hasChanged === false) return false;
  return call.method.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
}

/** Whether nothing more is sent, so that no `close` may follow. */
function isOver(res: NodeResponse): boolean {
  if (res.writableEnded) return true;
  return 'stream' in res ? res.stream.destroyed : res.destroyed;
}
