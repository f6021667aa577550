import type { DescMessage, Message } from '@bufbuild/protobuf';
import type { MethodRules } from '../../../../gen/attestation/options/v1/options_pb.js';
import type { Call, HandlerResponse } from '../../core/call.js';
import type { ApiError } from '../../core/errors.js';
import { handlersByMethod, methodRules, type ServiceEntry, unaryMethods } from '../services.js';
import { authenticate, type Credentials, findScopeRefusal } from './authenticate.js';
import { readIdempotencyKey } from './new-call.js';

import { countCall, countRefused, isSpentWindow, type RateLimits, rateHeaders } from './rate.js';

/** What the steps of a call need; nothing here knows of SQL or sockets. */
export type InterceptorDeps = Credentials &
  RateLimits & {
    services: readonly ServiceEntry[];
    /** Throws `request.invalid` when a message breaks the rules of its proto. */
    validate: (desc: DescMessage, message: Message) => void;
    /** Unix milliseconds. */
    nowMs: () => number;
  };

/** A call's way to its handler, the same for every surface. */
export type Interceptors = {
  /** The refusals that need no message, in the order of the API: 401, 403, 429. */
  admit: (call: Call) => Promise<void>;
  /** Checks the idempotency key and the message, and calls the handler. */
  invoke: (call: Call, message: Message) => Promise<HandlerResponse>;
  /** What the headers of every answer say of a call, names and values in turns; asked once, when nothing else follows. */
  rateHeaders: (call: Call) => string[];
  /** Counts what nothing has counted yet, once the call is over, answered or not. */
  finish: (call: Call) => void;
};

/** Throws when a method has no handler or its options leave open who may call it. */
export function createInterceptors(deps: InterceptorDeps): Interceptors {
  const handlers = handlersByMethod(deps.services);
  for (const method of unaryMethods(deps.services)) methodRules(method);
  return {
    async admit(call) {
      const rules = methodRules(call.method);
      await authenticate(deps, call, rules);
      const refusal = findScopeRefusal(call, rules);
      if (refusal !== undefined) await refuseCounted(deps, call, rules, refusal);
      await countCall(deps, call, rules, deps.nowMs());
    },
    async invoke(call, message) {
      const handler = handlers.get(call.method);
      if (handler === undefined) throw new Error(`${call.method.name} is of no service here`);
      readIdempotencyKey(call, methodRules(call.method));
      deps.validate(call.method.input, message);
      return handler(message, call);
    },
    rateHeaders: ({ rateStates }) => rateHeaders(rateStates, deps.nowMs()),
    finish: (call) => countRefused(deps, call, methodRules(call.method)),
  };
}

/** A call without the scope counts like any other, but a spent window is not what it is refused for. */
async function refuseCounted(
  deps: InterceptorDeps,
  call: Call,
  rules: MethodRules,
  refusal: ApiError,
): Promise<never> {
  try {
    await countCall(deps, call, rules, deps.nowMs());
  } catch (error) {
    if (!isSpentWindow(error)) throw error;
  }
  throw refusal;
}
