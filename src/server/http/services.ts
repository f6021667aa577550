import { type DescMethodUnary, type DescService, getOption, type Message } from '@bufbuild/protobuf';
import {
  Access,
  type MethodRules,
  rules as rulesOption,
} from '../../../gen/attestation/options/v1/options_pb.js';
import type { Call, HandlerResponse } from '../core/call.js';

/** A service with its implementation; `handlers` is a `Handlers<typeof desc>`. */
export type ServiceEntry = {
  readonly desc: DescService;
  readonly handlers: Readonly<Record<string, (request: never, call: Call) => Promise<HandlerResponse>>>;
};

/** The implementation of one method, its types erased. */
type Handler = (request: Message, call: Call) => Promise<HandlerResponse>;

/** Every method of the services. Throws if one is not unary: only unary methods have `Handlers`. */
export function unaryMethods(services: readonly ServiceEntry[]): DescMethodUnary[] {
  return services.flatMap(({ desc }) => desc.methods).map(assertUnary);
}

/** The handler of every method; throws when one is missing. */
export function handlersByMethod(services: readonly ServiceEntry[]): ReadonlyMap<DescMethodUnary, Handler> {
  return new Map(
    services.flatMap(({ desc, handlers }) =>
      desc.methods.map((method) => {
        const handler = handlers[method.localName];
        if (handler === undefined) throw new Error(`${desc.typeName}.${method.name} has no handler`);
        return [assertUnary(method), handler as Handler] as const;
      }),
    ),
  );
}

function assertUnary(method: DescService['methods'][number]): DescMethodUnary {
  if (method.methodKind !== 'unary') throw new Error(`${method.parent.typeName}.${method.name} is not unary`);
  return method as DescMethodUnary;
}

/**
 * The rules of a method in its proto: access, scope, rate bucket. Throws when an API key may call it without any
 * scope: that is a forgotten option, not a public method.
 */
export function methodRules(method: DescMethodUnary): MethodRules {
  const rules = getOption(method, rulesOption);
  if (rules.access === Access.UNSPECIFIED && rules.scope === '') {
    throw new Error(`${method.parent.typeName}.${method.name} names no scope`);
  }
  return rules;
}
