import type { JsonValue } from '@bufbuild/protobuf';
import { type OpenApi, type Place, resolve } from '../reference/openapi.js';

/** An operation with the values of its examples: what the samples of every language write down. */
export type SampleRequest = {
  method: string;
  /** With `{id}` filled in, and the query. */
  path: string;
  /** The variables of the path by name, and of the query. */
  variables: Record<string, string>;
  query: Record<string, number>;
  needsKey: boolean;
  body?: { type: string; json: JsonValue } | { type: string; file: string };
  /** The file that the answer is saved as, if it is one. */
  saveAs?: string;
};

/** A page of a list is short in examples. */
const LIMIT = 20;

/** Reads the request of an operation's examples. Throws if a variable of its path has none. */
export function sampleRequest(document: OpenApi, { method, path, operation }: Place): SampleRequest {
  const parameters = (operation.parameters ?? []).map((parameter) => resolve(document, parameter));
  const variables = Object.fromEntries(
    parameters
      .filter(({ in: where }) => where === 'path')
      .map(({ name, example }) => {
        if (example === undefined) throw new Error(`${operation.operationId}: ${name} has no example`);
        return [name, String(example)];
      }),
  );
  const query: Record<string, number> = parameters.some(
    ({ name, in: where }) => where === 'query' && name === 'limit',
  )
    ? { limit: LIMIT }
    : {};
  const search = Object.entries(query).map(([name, value]) => `${name}=${value}`);
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => variables[name] ?? '');
  const saveAs = savedFile(path);
  const body = bodyOf(operation.requestBody?.content ?? {});
  return {
    method: method.toUpperCase(),
    path: search.length === 0 ? filled : `${filled}?${search.join('&')}`,
    variables,
    query,
    needsKey: operation.security.length > 0,
    ...(body && { body }),
    ...(saveAs && { saveAs }),
  };
}

function bodyOf(content: Readonly<Record<string, { example?: JsonValue }>>): SampleRequest['body'] {
  const [first] = Object.entries(content);
  if (first === undefined) return undefined;
  const [type, { example }] = first;
  return type === 'application/json' ? { type, json: example ?? {} } : { type, file: 'statement.cose' };
}

/** The ending of a path such as `/bundle.ots`; the receipt of an entry is COSE as well. */
function savedFile(path: string): string | undefined {
  if (path.startsWith('/entries/')) return 'receipt.cose';
  const name = path.slice(path.lastIndexOf('/') + 1);
  return name.includes('.') ? name : undefined;
}
