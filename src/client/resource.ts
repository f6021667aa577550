/** The methods of a service as functions, created from its descriptor: a new RPC needs no code here. */
import type { DescMessage, DescMethod, DescMethodUnary, DescService, MessageShape } from '@bufbuild/protobuf';
import { type Caller, type CallOptions, callUnary } from './call.js';
import type { Given } from './input/given.js';
import { type Listing, listing, type Page } from './page.js';

/**
 * The methods of a service, named as in its proto but without the name of the resource: `createWebhook` is `create`,
 * `listWebhookDeliveries` is `listDeliveries`.
 */
export type Resource<S extends DescService, Name extends string> = {
  readonly [M in keyof S['method'] & string as ShortName<M, Name>]: Call<S['method'][M]>;
};

type ShortName<M extends string, Name extends string> = M extends
  | `${infer Before}${Name}es${infer After}`
  | `${infer Before}${Name}s${infer After}`
  | `${infer Before}${Name}${infer After}`
  ? `${Before}${After}`
  : M;

type Call<M> = M extends { input: infer I extends DescMessage; output: infer O extends DescMessage }
  ? (...args: Arguments<I, MessageShape<O>>) => Answer<MessageShape<O>>
  : never;

/** The request is optional if the method lists, or its request has no fields. */
type Arguments<I extends DescMessage, O> =
  O extends Page<unknown>
    ? [request?: Request<I>, options?: CallOptions]
    : keyof Omit<MessageShape<I>, '$typeName' | '$unknown'> extends never
      ? [request?: Request<I>, options?: CallOptions]
      : [request: Request<I>, options?: CallOptions];

/** A string is short for a request with this `id`. */
type Request<I extends DescMessage> = MessageShape<I> extends { id: string } ? Given<I> | string : Given<I>;

type Answer<O> = O extends Page<infer T> ? Listing<O, T> : Promise<O>;

/** Creates functions that call the unary methods of `service`. `name` is omitted from their names. */
export function resource<S extends DescService, Name extends string>(
  caller: Caller,
  service: S,
  name: Name,
): Resource<S, Name> {
  const calls = service.methods
    .filter(isUnary)
    .map((method) => [methodName(method.localName, name), callOf(caller, method)] as const);
  return Object.fromEntries(calls) as Resource<S, Name>;
}

/** The name of an RPC without the name of the resource. */
export function methodName(rpc: string, name: string): string {
  return rpc.replace(new RegExp(`${name}(?:es|s)?(?![a-z])`), '');
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === 'unary';
}

type AnyRequest = Record<string, unknown>;

function callOf(caller: Caller, method: DescMethodUnary) {
  const call = (request: AnyRequest, options?: CallOptions) => callUnary(caller, method, request, options);
  const isList = isPaged(method);
  return (given: AnyRequest | string = {}, options?: CallOptions) => {
    const request = typeof given === 'string' ? { id: given } : given;
    if (!isList) return call(request, options);
    return listing(async (cursor) => {
      const page = await call(cursor === undefined ? request : { ...request, cursor }, options);
      return page as unknown as Page<unknown>;
    });
  };
}

function isPaged({ input, output }: DescMethodUnary): boolean {
  const { data, nextCursor } = output.field;
  return input.field.cursor !== undefined && data?.fieldKind === 'list' && nextCursor !== undefined;
}
