/** The published OpenAPI document as a judge: says where a request or an answer is not as it promises. */
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

/** What of the document is read here, references resolved. */
export type Operation = {
  id: string;
  /** In upper case. */
  method: string;
  /** With its variables in braces. */
  path: string;
  /** `attestation.v1.BatchService/GetBatch`. */
  rpc: string;
  parameters: readonly Parameter[];
  body: { required: boolean; schema: JsonObject } | undefined;
  answers: ReadonlyMap<number, Answer>;
};

export type Parameter = {
  name: string;
  in: string;
  required: boolean;
  schema: JsonObject;
  example?: JsonValue;
};

export type Answer = {
  headers: ReadonlyMap<string, { required: boolean; schema: JsonObject }>;
  /** Schemas by media type. */
  content: ReadonlyMap<string, JsonObject>;
  /** The dotted codes that it may have, when it is an error. */
  codes: readonly string[];
};

/** An answer as it came. */
export type Came = { status: number; headers: Record<string, string | string[] | undefined>; body: Buffer };

export type Contract = {
  operations: readonly Operation[];
  /** What a reference leads to, or the schema itself. */
  resolve: (schema: JsonObject) => JsonObject;
  /** Why the answer is not one that the document promises; empty when it is. */
  findProblems: (operation: Operation, came: Came, httpMethod?: string) => string[];
  /** Why a value does not fit a schema of the document; empty when it does. */
  findMisfits: (schema: JsonObject, value: JsonValue) => string[];
};

const NAME = 'openapi.json';

/**
 * Reads a document. Members of answers that it does not mention count as problems, though to clients they are none: the
 * service must not say more than it tells of.
 */
export function openContract(published: JsonObject): Contract {
  const document = closed(published) as JsonObject;
  const ajv = formats.default(new Ajv2020({ strict: false, allErrors: true, validateFormats: true }));
  ajv.addSchema({ ...document, $id: NAME });
  const compiled = new Map<JsonObject, ValidateFunction>();
  const resolve = (value: JsonObject): JsonObject =>
    typeof value.$ref === 'string' ? resolve(followPointer(document, value.$ref)) : value;
  const findMisfits = (schema: JsonObject, value: JsonValue): string[] => {
    const check = compiled.get(schema) ?? ajv.compile(absolute(schema) as JsonObject);
    compiled.set(schema, check);
    if (check(value)) return [];
    return (check.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  };
  return {
    operations: readOperations(document, resolve),
    resolve,
    findMisfits,
    findProblems: (operation, came, httpMethod = operation.method) => {
      const answer = operation.answers.get(came.status);
      if (answer === undefined) return [`status ${came.status} is not documented: ${came.body.toString()}`];
      return [
        ...headerProblems(answer, came, findMisfits),
        ...(httpMethod === 'HEAD' ? [] : bodyProblems(answer, came, findMisfits)),
      ];
    },
  };
}

type FindMisfits = Contract['findMisfits'];

function headerProblems({ headers }: Answer, came: Came, findMisfits: FindMisfits): string[] {
  return [...headers].flatMap(([name, { required, schema }]) => {
    const value = came.headers[name];
    if (value === undefined) return required ? [`the header ${name} is missing`] : [];
    const isNumber = schema.type === 'integer' && /^\d+$/.test(String(value));
    return findMisfits(schema, isNumber ? Number(value) : String(value)).map(
      (problem) => `${name}: ${problem}`,
    );
  });
}

function bodyProblems({ content }: Answer, { headers, body }: Came, findMisfits: FindMisfits): string[] {
  const mediaType = headers['content-type'];
  if (content.size === 0) return body.length === 0 && mediaType === undefined ? [] : ['there is a body'];
  const schema = content.get(String(mediaType));
  if (schema === undefined) return [`the media type ${mediaType} is not documented`];
  if (mediaType !== 'application/json') return [];
  return findMisfits(schema, JSON.parse(body.toString()) as JsonValue).map((problem) => `body${problem}`);
}

function readOperations(document: JsonObject, resolve: Contract['resolve']): Operation[] {
  return Object.entries(objects(document.paths)).flatMap(([path, item]) =>
    Object.entries(objects(item)).map(([method, operation]) => {
      const body = operation.requestBody as JsonObject | undefined;
      return {
        id: String(operation.operationId),
        method: method.toUpperCase(),
        path,
        rpc: String(operation['x-rpc']),
        parameters: (operation.parameters as JsonObject[]).map(resolve) as Parameter[],
        body: body && {
          required: body.required === true,
          schema: schemaOf(Object.values(objects(body.content))[0]),
        },
        answers: new Map(
          Object.entries(objects(operation.responses)).map(([status, answer]) => [
            Number(status),
            readAnswer(resolve(answer), resolve),
          ]),
        ),
      };
    }),
  );
}

function readAnswer(answer: JsonObject, resolve: Contract['resolve']): Answer {
  const content = objects(answer.content);
  return {
    headers: new Map(
      Object.entries(objects(answer.headers)).map(([name, header]) => {
        const { required, schema } = resolve(header);
        return [name.toLowerCase(), { required: required === true, schema: schema as JsonObject }];
      }),
    ),
    content: new Map(Object.entries(content).map(([type, media]) => [type, schemaOf(media)])),
    codes: Object.values(content).flatMap(({ examples }) => Object.keys(objects(examples))),
  };
}

function schemaOf(media: JsonObject | undefined): JsonObject {
  return (media?.schema ?? {}) as JsonObject;
}

function objects(value: JsonValue | undefined): Record<string, JsonObject> {
  return (value ?? {}) as Record<string, JsonObject>;
}

function followPointer(document: JsonObject, ref: string): JsonObject {
  const steps = ref.replace(/^#\//, '').split('/');
  const found = steps.reduce<JsonValue | undefined>((at, step) => objects(at)[step], document);
  if (found === undefined) throw new Error(`${ref} leads nowhere`);
  return found as JsonObject;
}

/** The document with every object closed that lists its members and does not say what else it may have. */
function closed(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, closed(member)]));
  const isOpen = value.type === 'object' && 'properties' in value && !('additionalProperties' in value);
  return isOpen ? { ...members, additionalProperties: false } : members;
}

/** References as they are seen from outside the document. */
function absolute(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(absolute);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) =>
      name === '$ref' ? [name, `${NAME}${member}`] : [name, absolute(member)],
    ),
  );
}
