import type { DescField, DescMessage, JsonObject } from '@bufbuild/protobuf';
import { findTextReader } from '../../server/http/rest/field-path.js';
import { commentOf } from './comment.js';
import { type Components, refTo } from './components.js';
import { findMessageExample } from './example.js';
import { findExample } from './field-example.js';
import type { Operation } from './operation.js';
import { isRequired } from './required.js';
import { BINARY, findWellKnownSchema } from './scalar.js';
import { defaultOf, messageSchema, valueSchema } from './schema.js';

/** The parameters section of the components: the request headers that the service takes. */
export const PARAMETERS: JsonObject = {
  'Idempotency-Key': {
    name: 'Idempotency-Key',
    in: 'header',
    description:
      'A name for this request, of your choice: a second request with the same key gets the answer to the first and does nothing else. Keys are remembered for 24 hours, unless the operator chose otherwise, and belong to the API key.',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
    example: '8f14e45f-ceea-467f-9e7c-0a1b2c3d4e5f',
  },
  'If-Match': {
    name: 'If-Match',
    in: 'header',
    description: 'Entity tags, or `*`; the answer is 412 when its own is none of them.',
    schema: { type: 'string' },
    example: '"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"',
  },
  'If-None-Match': {
    name: 'If-None-Match',
    in: 'header',
    description:
      'Entity tags that the client has; the answer is 304 without a body when it still is one of them.',
    schema: { type: 'string' },
    example: '"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"',
  },
};

const ENTITY_TAG_HEADERS = ['If-None-Match', 'If-Match'].map((name) => refTo('parameters', name));

/** The parameters of an operation: its path's, its query's, its headers. */
export function parameters(components: Components, operation: Operation): JsonObject[] {
  const { method, rules, binding, httpMethod } = operation;
  const inPath = pathFields(operation).map((name) => pathParameter(components, method.input, name));
  const queryFields =
    binding.body === '*' ? [] : unboundFields(operation).filter(({ name }) => name !== binding.body);
  const inQuery = queryFields.flatMap((field) => queryParameters(components, field, '', [method.input]));
  return [
    ...inPath,
    ...inQuery,
    ...(rules.idempotentByKey || rules.batchOf !== '' ? [refTo('parameters', 'Idempotency-Key')] : []),
    ...(rules.etag && httpMethod === 'GET' ? ENTITY_TAG_HEADERS : []),
  ];
}

/** The body of an operation's request; undefined if it has none. */
export function findRequestBody(components: Components, operation: Operation): JsonObject | undefined {
  const { method, binding, bodyKind, rules } = operation;
  if (bodyKind === 'none') return undefined;
  if (bodyKind === 'raw') {
    const types = rules.requestTypes.length === 0 ? ['*/*'] : rules.requestTypes;
    return { required: true, content: Object.fromEntries(types.map((type) => [type, { schema: BINARY }])) };
  }
  const field = method.input.fields.find(({ name }) => name === binding.body);
  if (field !== undefined) {
    const schema = valueSchema(components, field, 'request');
    return {
      required: isRequired(field, 'request', () => schema),
      content: { 'application/json': { schema } },
    };
  }
  const fields = unboundFields(operation);
  const schema = bodySchema(components, method.input, fields);
  const example = findMessageExample(components, method.input, 'request', fields);
  return {
    required: 'required' in schema.schema,
    content: { 'application/json': { schema: schema.ref, ...(example === undefined ? {} : { example }) } },
  };
}

/** The message without the fields in the path, as a component. */
function bodySchema(
  components: Components,
  desc: DescMessage,
  fields: readonly DescField[],
): { ref: JsonObject; schema: JsonObject } {
  const schema = messageSchema(components, desc, 'request', fields);
  let name = components.nameOf(desc, 'request');
  while (JSON.stringify(components.schemas.get(name) ?? schema) !== JSON.stringify(schema)) name += 'Body';
  components.schemas.set(name, schema);
  return { ref: refTo('schemas', name), schema };
}

function pathParameter(components: Components, desc: DescMessage, name: string): JsonObject {
  const field = findField(desc, name.split('.'));
  return { name, in: 'path', required: true, ...parameterOf(components, field) };
}

/** Query parameters of a field: one, or those of a message's members. None if text cannot represent it. */
function queryParameters(
  components: Components,
  field: DescField,
  prefix: string,
  within: readonly DescMessage[],
): JsonObject[] {
  const name = prefix + field.name;
  const { message } = field;
  if (findTextReader(field) !== undefined) {
    const required = isRequired(field, 'request', () => valueSchema(components, field, 'request'));
    return [{ name, in: 'query', required, ...parameterOf(components, field) }];
  }
  const isPlain =
    field.fieldKind === 'message' && message !== undefined && findWellKnownSchema(message) === undefined;
  if (!isPlain || within.includes(message)) return [];
  return message.fields.flatMap((inner) =>
    queryParameters(components, inner, `${name}.`, [...within, message]),
  );
}

function parameterOf(components: Components, field: DescField): JsonObject {
  const example = findExample(field);
  return {
    description: commentOf(field),
    schema: { ...valueSchema(components, field, 'request'), ...defaultOf(field, 'request') },
    ...(example === undefined ? {} : { example }),
  };
}

/** Dotted names of the fields that are variables of the path. */
function pathFields({ path }: Operation): string[] {
  return [...path.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => name);
}

/** The fields that are not in the path. */
function unboundFields({ method, binding }: Operation): DescField[] {
  const bound = binding.template.variables.map(({ fieldPath }) => fieldPath.join('.'));
  return method.input.fields.filter(({ name }) => !bound.includes(name));
}

function findField(desc: DescMessage, [name = '', ...rest]: readonly string[]): DescField {
  const field = desc.fields.find((candidate) => candidate.name === name);
  if (field === undefined) throw new Error(`${desc.typeName} has no field ${name}`);
  return rest.length === 0 || field.message === undefined ? field : findField(field.message, rest);
}
