/** Requests for the operations of the OpenAPI document, made of the samples that there are for every RPC. */
import type { DescMethodUnary, JsonObject } from '@bufbuild/protobuf';
import { httpBindings, type Template } from '../../src/server/http/rest/http-rule.js';

import { type Known, sampleOf } from '../server/rpc/samples.js';
import type { App } from '../support/app.js';
import type { RestAnswer, RestOptions } from '../support/calling/rpc-clients.js';
import { bodyOf, publicMethods, restRequest } from '../support/calling/rpcs.js';
import type { Operation } from '../support/judging/contract.js';

/** An operation of the document with the RPC that it is, and what its path sets by itself. */
export type Callable = { operation: Operation; method: DescMethodUnary; literals: Record<string, string> };

/** How a request differs from the sample. */
export type Attempt = {
  apiKey: string | undefined;
  known: Known;
  /** Members of the message. */
  input?: Record<string, unknown>;
  headers?: Record<string, string>;
  /** What only REST can send: another body, another query. */
  raw?: Pick<RestOptions, 'body' | 'headers'> & { query?: string };
};

/** `GET /v1/batches/*` of an operation or of a path of the protos: equal for what is the same route. */
export function routeOf(method: string, path: string | Template): string {
  const pattern = typeof path === 'string' ? path.replace(/\{[^}]+\}/g, '*') : patternOf(path);
  return `${method} ${pattern}`;
}

function patternOf({ segments }: Template): string {
  return `/${segments.map((segment) => (segment.kind === 'literal' ? segment.text : '*')).join('/')}`;
}

/** Every route that the protos of the served services describe. */
export async function describedRoutes(): Promise<string[]> {
  const methods = await publicMethods();
  return methods.flatMap((method) =>
    httpBindings(method).map(({ httpMethod, template }) => routeOf(httpMethod, template)),
  );
}

/** The operations with their RPCs. Throws for one that is of none. */
export async function callables(operations: readonly Operation[]): Promise<Callable[]> {
  const methods = await publicMethods();
  return operations.map((operation) => {
    const method = methods.find(({ parent, name }) => operation.rpc === `${parent.typeName}/${name}`);
    if (method === undefined) throw new Error(`${operation.id} is of no RPC`);
    return { operation, method, literals: literalsOf(operation, method) };
  });
}

function literalsOf(operation: Operation, method: DescMethodUnary): Record<string, string> {
  const route = routeOf(operation.method, operation.path);
  const binding = httpBindings(method).find(
    ({ httpMethod, template }) => routeOf(httpMethod, template) === route,
  );
  const { variables = [], segments = [] } = binding?.template ?? {};
  const set = variables.flatMap(({ fieldPath, start }) => {
    const segment = segments[start];
    return segment?.kind === 'literal' ? [[fieldPath.join('.'), segment.text] as const] : [];
  });
  return Object.fromEntries(set);
}

/** The message of an attempt. */
export function messageOf(
  { method, literals }: Callable,
  { known, input }: Attempt,
): Record<string, unknown> {
  return { ...sampleOf(method, known), ...literals, ...input };
}

/** Sends it by REST. */
export function send(app: App, callable: Callable, attempt: Attempt): Promise<RestAnswer> {
  const wanted = restRequest(callable.method, messageOf(callable, attempt));
  const { path, method } = wanted;
  const sent = bodyOf(wanted);
  const { query, ...raw } = attempt.raw ?? {};
  const separator = path.includes('?') ? '&' : '?';
  return app.rest(query === undefined ? path : path + separator + query, {
    method,
    apiKey: attempt.apiKey,
    body: raw.body ?? sent.body,
    headers: { ...sent.headers, ...attempt.headers, ...raw.headers },
  });
}

/** The dotted code of an error answer, `ok` otherwise. */
export function codeOf({ status, json }: RestAnswer): string {
  return status < 400 ? 'ok' : String((json.error as JsonObject | undefined)?.code);
}
