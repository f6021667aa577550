import type { DescMessage, Message } from '@bufbuild/protobuf';
import { Bucket } from '../../../../gen/attestation/options/v1/options_pb.js';
import type { Call, HandlerResponse } from '../../core/call.js';
import type { ApiError } from '../../core/errors.js';
import type { RateState } from '../../core/rate-window.js';
import { handlersByMethod, methodRules, type ServiceEntry, unaryMethods } from '../services.js';
import { isClosed, type NodeResponse, type RequestRecord } from '../socket/requests.js';
import { setHeaders } from '../socket/write-response.js';
import {
  authenticate,
  type Credentials,
  findMissingCredentials,
  findPrincipal,
  findScopeRefusal,
  knownPrincipal,
} from './authenticate.js';
import { checkItems } from './batch-items.js';
import { createCallSpans } from './call-span.js';
import { readIdempotencyKey } from './new-call.js';
import { assertOwn, assertScopable, fillOwnProject } from './project-scope.js';

import { countCall, countRest, countUnrouted, isSpentWindow, type RateLimits, rateHeaders } from './rate.js';

/** Dependencies of interceptors: no SQL, no sockets. */
export type InterceptorDeps = Credentials &
  RateLimits & {
    services: readonly ServiceEntry[];
    /** Throws `request.invalid` when a message breaks the rules of its proto. */
    validate: (desc: DescMessage, message: Message) => void;
    /** Returns the error for the caller of one that a look-up or handler threw; `work` names in the log what failed. */
    explainError?: (work: string, error: unknown) => unknown;
    /** Unix milliseconds. */
    nowMs: () => number;
  };

/**
 * Admits a call. The refusal of one without credentials is returned: strangers get it by the thousands, and to throw and
 * await it takes a fifth of their CPU.
 */
export type Admit = (call: Call) => ApiError | Promise<void>;

/** The steps of a call, the same for every protocol. */
export type Interceptors = {
  /** Rejects for refusals that need no message, in this order: 401, 403, 429. Returns the 401 of one without credentials. */
  admit: Admit;
  /** Checks the idempotency key and the message, and calls the handler. */
  invoke: (call: Call, message: Message) => Promise<HandlerResponse>;
  /** Rate-limit response headers as a flat [name, value, …] list. Call once, right before sending. */
  rateHeaders: (call: Call) => string[];
  /**
   * Counts a request that has no route, if an API key comes with it, and sets the rate-limit headers of its response.
   * Undefined, so that nobody waits, of one without credentials. Never rejects.
   */
  countUnrouted: (request: Pick<RequestRecord, 'req' | 'res'>) => Promise<void> | undefined;
  /** Counts the call if nothing has counted it. Call once it is over, with or without a response. */
  finish: (call: Call) => void;
};

/** Throws when a method has no handler or its options leave open who may call it. */
export function createInterceptors(deps: InterceptorDeps): Interceptors {
  const handlers = handlersByMethod(deps.services);
  const headersOf = rememberHeaders(deps.nowMs);
  const beginSpan = createCallSpans(deps.nowMs);
  const { explainError = unexplained } = deps;
  for (const method of unaryMethods(deps.services)) assertScopable(method, methodRules(method));
  return {
    admit(call) {
      return findMissingCredentials(deps, call) ?? admit(deps, call);
    },
    async invoke(call, message) {
      const handler = handlers.get(call.method);
      if (handler === undefined) throw new Error(`${call.method.name} is of no service here`);
      const span = beginSpan(call);
      readIdempotencyKey(call);
      if (call.session !== undefined) fillOwnProject(call, message);
      if (call.nextItem === undefined) deps.validate(call.method.input, message);
      else call.nextItem = checkItems(call, deps.validate, call.nextItem);
      try {
        if (call.session !== undefined) await assertOwn(deps.sessions, call, message);
        const response = await (span ? span.run(() => handler(message, call)) : handler(message, call));
        if (call.rules.bucket === Bucket.READS) call.tally.due = 0;
        return response;
      } catch (error) {
        throw explainError(call.method.localName, error);
      }
    },
    rateHeaders: ({ rateStates }) => (rateStates.length === 0 ? [] : [...headersOf(rateStates)]),
    countUnrouted({ req, res }) {
      const { authorization } = req.headers;
      return authorization === undefined ? undefined : countUnroutedOf(deps, authorization, res);
    },
    finish: (call) => countRest(deps, call),
  };
}

async function admit(deps: InterceptorDeps, call: Call): Promise<void> {
  const { explainError = unexplained } = deps;
  try {
    call.principal = knownPrincipal(deps, call);
    if (call.principal === undefined) await authenticate(deps, call);
    const refusal = findScopeRefusal(call);
    if (refusal !== undefined) await refuseCounted(deps, call, refusal);
    await countCall(deps, call, deps.nowMs());
  } catch (error) {
    throw explainError(call.method.localName, error);
  }
}

async function countUnroutedOf(deps: InterceptorDeps, authorization: string, res: NodeResponse) {
  const principal = await findPrincipal(deps, authorization).catch(() => undefined);
  if (principal === undefined) return;
  const state = await countUnrouted(deps, principal, deps.nowMs()).catch(() => undefined);
  const headers = state === undefined ? [] : rateHeaders([state], deps.nowMs());
  if (!isClosed(res)) setHeaders(res, headers);
}

function unexplained(_work: string, error: unknown): unknown {
  return error;
}

/** The rate headers of the states that were asked for last are kept for a second: the rows of one write share theirs. */
function rememberHeaders(nowMs: () => number): (states: readonly RateState[]) => readonly string[] {
  let last: { states: readonly RateState[]; second: number; headers: readonly string[] } | undefined;
  return (states) => {
    const now = nowMs();
    const second = Math.floor(now / 1000);
    if (last?.states !== states || last.second !== second)
      last = { states, second, headers: rateHeaders(states, now) };
    return last.headers;
  };
}

/** A call without the scope counts like any other, but the error is its missing scope even if a window is spent. */
async function refuseCounted(deps: InterceptorDeps, call: Call, refusal: ApiError): Promise<never> {
  try {
    await countCall(deps, call, deps.nowMs());
  } catch (error) {
    if (!isSpentWindow(error)) throw error;
  }
  throw refusal;
}
