import { type DescMethodUnary, getOption } from '@bufbuild/protobuf';
import { type MethodRules, rules as rulesOption } from '../../../../gen/attestation/options/v1/options_pb.js';
import { type Bound, boundBy, findBound } from '../../json/bound.js';
import { findItemReader, type ReadItems } from '../call/batch-items.js';
import type { ServiceEntry } from '../services.js';
import { type HttpBinding, httpBindings, pathPattern } from './http-rule.js';
import { compileRequest, type RequestReader } from './request.js';
import { compileResponse, type ResponseRules } from './response.js';

/** A REST route of an RPC, compiled. */
export type Route = ResponseRules & {
  method: DescMethodUnary;
  rules: MethodRules;
  binding: HttpBinding;
  /** The paths that it serves. */
  paths: RegExp;
  request: RequestReader;
  /** Bound of its message, and of its body. */
  bound: Bound;
  /** Reads the items of a batch; undefined for other methods. */
  readItems: ReadItems | undefined;
};

/**
 * Every route of the services' RPCs; those without a `google.api.http` option have none. Throws, naming the RPC, when
 * one streams, has no handler, or has options that cannot be followed.
 */
export function compileRoutes(services: readonly ServiceEntry[], maxBodyBytes: number): Route[] {
  return services.flatMap(({ desc, handlers }) =>
    desc.methods.flatMap((method) => {
      try {
        const bindings = httpBindings(method);
        if (bindings.length === 0) return [];
        if (method.methodKind !== 'unary') throw new Error('a streaming RPC has no REST path');
        if (handlers[method.localName] === undefined) throw new Error('no handler');
        return bindings.map((binding) => compileRoute(method as DescMethodUnary, binding, maxBodyBytes));
      } catch (error) {
        throw new Error(`${desc.typeName}.${method.name}: ${(error as Error).message}`, { cause: error });
      }
    }),
  );
}

function compileRoute(method: DescMethodUnary, binding: HttpBinding, maxBodyBytes: number): Route {
  const rules = getOption(method, rulesOption);
  const { successStatus, etag } = rules;
  if (successStatus !== 0 && (successStatus < 200 || successStatus > 299)) {
    throw new Error(`${successStatus} is no status of success`);
  }
  return {
    method,
    rules,
    binding,
    paths: pathPattern(binding.template),
    request: compileRequest(method.input, binding),
    bodyOf: compileResponse(method.output, binding.responseBody),
    successStatus: successStatus || 200,
    hasEtag: etag,
    bound: boundBy(findBound(method.input), maxBodyBytes),
    readItems: findItemReader(method),
  };
}
