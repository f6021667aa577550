import type { DescMessage, DescMethodUnary, DescService, Message, MessageShape } from '@bufbuild/protobuf';
import type { MethodRules } from '../../../gen/attestation/options/v1/options_pb.js';
import type { OpenSpan } from '../telemetry/spans.js';
import type { ApiError } from './errors.js';
import type { Principal, Session } from './principal.js';
import type { RateState } from './rate-window.js';

/**
 * One RPC in progress, of any protocol. The server creates it, interceptors fill it in, the handler reads it. It ends
 * with the response.
 */
export type Call = {
  readonly method: DescMethodUnary;
  /** The method's rules in its proto: access, scope, rate bucket. */
  readonly rules: MethodRules;
  /** `req_` and a ULID; also in the response's `X-Request-Id`. */
  readonly requestId: string;
  /** When the request arrived, monotonic milliseconds. */
  readonly startedMs: number;
  /** A request header or gRPC metadata value, by its lower-case name. */
  readonly header: (name: string) => string | undefined;
  /** Aborted if the client disconnects or the deadline passes. Created on first use. */
  readonly signal: () => AbortSignal;
  /** Set once the caller is authenticated; absent on public methods. */
  principal: Principal | undefined;
  /** Set if the caller is authenticated by a session. */
  session: Session | undefined;
  /** The address or network that the client counts for; undefined if it comes through a trusted proxy. */
  readonly peer: string | undefined;
  /** The checked `Idempotency-Key` as it is claimed, for methods that honour it. */
  idempotencyKey: string | undefined;
  /** The rate windows that the call was counted in, after it. The response's headers report the tightest. */
  rateStates: readonly RateState[];
  readonly tally: Tally;
  /** Its span, once its handler is called; null if it is not sampled. */
  span?: OpenSpan | null | undefined;
  /** Bytes of the request's body that were read, plus those that a compressed body was inflated to. */
  bodyBytes: number;
  /**
   * Of a batch: reads and checks its next item; undefined after the last. Throws the error of the whole request if it is
   * no list of items. The message of the call has no items.
   */
  nextItem: (() => ReadItem | undefined) | undefined;
  /** Of a batch: whether it has changed anything. Without changes its response may be replaced by an error. */
  hasChanged: boolean | undefined;
  /** The HTTP status of a response that is pending: one of the method's `pending_statuses`. Undefined for others. */
  pendingStatus: number | undefined;
  /** Response headers (gRPC: leading metadata), by lower-case name. */
  readonly responseHeaders: Map<string, string>;
};

/** The count of a call in rate limits. */
type Tally = {
  /** What the windows still admit: any call, or only replays of earlier requests. */
  room: 'any' | 'replays';
  /** The reads that were counted when the call was admitted. */
  taken: number;
  /** The reads to count at the end; undefined: by the size of its body, as for a rejected call. */
  due: number | undefined;
};

/** An item of a batch: its message, or the error that it would have got alone, and its size as sent. */
export type ReadItem =
  | { readonly bytes: number; readonly message: Message; readonly error?: never }
  | { readonly bytes: number; readonly error: ApiError; readonly message?: never };

/** A message as REST sends it: JSON in UTF-8, and the entity tag of these bytes if it is known. */
type SerializedJson = { readonly bytes: Uint8Array; readonly etag?: string };

/**
 * A response that REST sends without making a message of it. Connect and gRPC serialise the message themselves. The
 * sender calls one of its functions, once: its sources may be gone afterwards.
 */
export type SerializedResponse<M extends Message = Message> = {
  readonly json: () => SerializedJson;
  readonly message: () => M;
};

/** The result of a handler. */
export type HandlerResponse<M extends Message = Message> = M | SerializedResponse<M>;

/** Whether a response has its JSON already. */
export function isSerialized(response: HandlerResponse): response is SerializedResponse {
  return !('$typeName' in response);
}

/** The response as a message. */
export function messageOf(response: HandlerResponse): Message {
  return isSerialized(response) ? response.message() : response;
}

/** The implementation of a service: a handler for each of its methods. Throws `ApiError` for the caller. */
export type Handlers<S extends DescService> = {
  [K in keyof S['method']]: S['method'][K] extends {
    input: infer I extends DescMessage;
    output: infer O extends DescMessage;
  }
    ? (request: MessageShape<I>, call: Call) => Promise<HandlerResponse<MessageShape<O>>>
    : never;
};

/** Returns the call's principal. Throws if the method is public, which is a programming error. */
export function getPrincipal(call: Call): Principal {
  if (call.principal === undefined) throw new Error(`${call.method.name} was called without a principal`);
  return call.principal;
}
