/** Requests without what the document calls optional, and requests without something that it calls required. */
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { RestRequest } from '../support/calling/rpcs.js';
import type { Contract, Operation } from '../support/judging/contract.js';

/** A request without one part that the document calls required. */
export type Omission = { what: string; request: RestRequest };

/** Schema and value of a body, or of something in it. */
type Part = { schema: JsonObject; value: JsonValue | undefined };

/**
 * The members of a destination depend on its kind, which the document says in words, and the test's store needs an
 * endpoint and a key.
 */
const BY_KIND: ReadonlySet<string> = new Set(['destination']);

/** The request with required parameters and members only; parameters that it lacks have the value of their example. */
export function onlyRequired(contract: Contract, operation: Operation, request: RestRequest): RestRequest {
  const { pathname, searchParams } = new URL(request.path, 'http://localhost');
  const required = operation.parameters.filter((parameter) => parameter.in === 'query' && parameter.required);
  const query = required.flatMap(({ name, example }): [string, string][] => {
    const value = searchParams.get(name) ?? example;
    return value === undefined ? [] : [[name, String(value)]];
  });
  const { body } = operation;
  return {
    method: request.method,
    path: withQuery(pathname, new URLSearchParams(query)),
    ...(request.raw && { raw: request.raw }),
    body: body?.required
      ? (stripped(contract, { schema: body.schema, value: request.body }) as JsonObject)
      : undefined,
  };
}

/** For every required parameter, the body if it is required, and every required member of it: the request without. */
export function omissions(contract: Contract, operation: Operation, request: RestRequest): Omission[] {
  const { pathname, searchParams } = new URL(request.path, 'http://localhost');
  const required = operation.parameters.filter((parameter) => parameter.in === 'query' && parameter.required);
  const withoutParameters = required.map(({ name }) => {
    const query = new URLSearchParams([...searchParams].filter(([other]) => other !== name));
    return { what: `the parameter ${name}`, request: { ...request, path: withQuery(pathname, query) } };
  });
  const { body } = operation;
  if (!body?.required) return withoutParameters;
  const { raw, ...rest } = request;
  if (raw !== undefined) return [...withoutParameters, { what: 'its body', request: rest }];
  const bodies = withoutMembers(contract, { schema: body.schema, value: request.body }, '');
  return [
    ...withoutParameters,
    { what: 'its body', request: { ...request, body: undefined } },
    ...bodies.map(({ at, value }) => ({ what: at, request: { ...request, body: value as JsonObject } })),
  ];
}

function stripped(contract: Contract, { schema, value }: Part): JsonValue | undefined {
  const { items, properties, required, additionalProperties } = contract.resolve(schema);
  if (Array.isArray(value)) {
    return value.map((item) => stripped(contract, { schema: items as JsonObject, value: item }) ?? null);
  }
  if (!isObject(value) || additionalProperties === true) return value;
  const kept = Object.entries(value).filter(([name]) => ((required ?? []) as string[]).includes(name));
  const inner = (name: string) => (properties as Record<string, JsonObject>)[name] as JsonObject;
  return Object.fromEntries(
    kept.map(([name, member]) => [
      name,
      BY_KIND.has(name) ? member : (stripped(contract, { schema: inner(name), value: member }) as JsonValue),
    ]),
  );
}

/** The value without each of its required members, at any depth, and the pointer of that member. */
function withoutMembers(
  contract: Contract,
  { schema, value }: Part,
  pointer: string,
): { at: string; value: JsonValue }[] {
  const { items, properties, required } = contract.resolve(schema);
  const names = isObject(value) ? Object.keys(value) : [];
  const schemaOf = (name: string) =>
    (Array.isArray(value) ? items : objectOf(properties)[name]) as JsonObject;
  const entries = Array.isArray(value)
    ? value.slice(0, 1).map((item): [string, JsonValue] => ['0', item])
    : names.map((name): [string, JsonValue] => [name, objectOf(value)[name] as JsonValue]);
  const own = ((required ?? []) as string[]).map((name) => {
    const { [name]: _, ...rest } = objectOf(value);
    return { at: `${pointer}/${name}`, value: rest as JsonValue };
  });
  const deeper = entries
    .filter(([name]) => schemaOf(name) !== undefined)
    .flatMap(([name, member]) =>
      withoutMembers(contract, { schema: schemaOf(name), value: member }, `${pointer}/${name}`).map(
        (without) => ({
          at: without.at,
          value: Array.isArray(value)
            ? value.with(Number(name), without.value)
            : { ...objectOf(value), [name]: without.value },
        }),
      ),
    );
  return [...own, ...deeper];
}

function withQuery(path: string, query: URLSearchParams): string {
  return query.size === 0 ? path : `${path}?${query}`;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {};
}
