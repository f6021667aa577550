import type { JsonObject, JsonValue } from '@bufbuild/protobuf';

/** The parts of the OpenAPI 3.1 document of `npm run generate` that the reference reads. */
export type OpenApi = {
  info: { title: string; version: string; description: string };
  servers: readonly { url: string }[];
  tags: readonly { name: string; description: string }[];
  paths: Readonly<Record<string, PathItem>>;
  webhooks: Readonly<Record<string, PathItem>>;
  components: Readonly<Record<string, Readonly<Record<string, JsonValue>>>>;
};

/** Operations by lower-case HTTP method. */
type PathItem = Readonly<Record<string, Operation>>;

export type Operation = {
  operationId: string;
  summary: string;
  description: string;
  'x-rpc'?: string;
  tags?: readonly string[];
  parameters?: readonly (Parameter | Ref)[];
  requestBody?: { required: boolean; content: Content };
  responses: Readonly<Record<string, Response | Ref>>;
  security: readonly object[];
};

/** An operation where it is found: by its method and path, or as the webhook of an event. */
export type Place = { method: string; path: string; operation: Operation };

export type Parameter = {
  name: string;
  in: string;
  required?: boolean;
  description: string;
  schema: Schema;
  example?: JsonValue;
};

export type Response = {
  description: string;
  headers?: Readonly<Record<string, Ref>>;
  content?: Content;
};

export type Header = { description: string; example: string | number };

/** Bodies by media type. */
export type Content = Readonly<Record<string, { schema: Schema; example?: JsonValue }>>;

export type Schema = JsonObject & {
  type?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  enum?: JsonValue[];
  anyOf?: Schema[];
};

type Ref = { $ref: string };

/** The name that a reference ends with. */
export function refName(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1);
}

/** Resolves a reference to a component; other values are returned. Throws if there is no such component. */
export function resolve<T extends object>({ components }: OpenApi, value: T | Ref): T {
  if (!('$ref' in value) || typeof value.$ref !== 'string') return value as T;
  const [, , section = '', name = ''] = value.$ref.split('/');
  const found = components[section]?.[name];
  if (found === undefined) throw new Error(`the document has no ${value.$ref}`);
  return found as unknown as T;
}

/** The operations of `paths` or `webhooks`. */
export function placesOf(items: Readonly<Record<string, PathItem>>): Place[] {
  return Object.entries(items).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method, path, operation })),
  );
}
