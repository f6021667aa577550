import type { DescMessage, DescMethodUnary, DescService, MessageShape } from '@bufbuild/protobuf';
import type { Principal } from './principal.js';
import type { RateState } from './rate-window.js';

/**
 * One RPC under way, whichever surface it came by. The server makes it, interceptors fill it in, the handler reads
 * it; nothing else outlives the answer.
 */
export type Call = {
  readonly method: DescMethodUnary;
  /** `req_` and a ULID; also in the answer's `X-Request-Id`. */
  readonly requestId: string;
  /** A request header or gRPC metadata value, by its lower-case name. */
  readonly header: (name: string) => string | undefined;
  /** Aborted when the client goes away or the deadline passes; made when first asked for. */
  readonly signal: () => AbortSignal;
  /** Set once the caller is authenticated; absent on public methods. */
  principal: Principal | undefined;
  /** The checked `Idempotency-Key`, for methods that honour it. */
  idempotencyKey: string | undefined;
  /** The rate windows the call was counted in, as they stand after it; the answer's headers speak of the tightest. */
  rateStates: readonly RateState[];
  /** Whether what the call costs is counted; a creation that is not in the end counts as a read. */
  isCounted: boolean;
  /** Set when the windows leave room for nothing new: only what was done before is answered. */
  isReplayOnly: boolean;
  /** Headers of the answer (gRPC: leading metadata), by lower-case name. */
  readonly responseHeaders: Map<string, string>;
};

/** The implementation of a service: a handler for each of its methods. Throws `ApiError` to tell the caller. */
export type Handlers<S extends DescService> = {
  [K in keyof S['method']]: S['method'][K] extends {
    input: infer I extends DescMessage;
    output: infer O extends DescMessage;
  }
    ? (request: MessageShape<I>, call: Call) => Promise<MessageShape<O>>
    : never;
};

/** The call's principal; throws when the method is public, which is a programming error. */
export function getPrincipal(call: Call): Principal {
  if (call.principal === undefined) throw new Error(`${call.method.name} was called without a principal`);
  return call.principal;
}
