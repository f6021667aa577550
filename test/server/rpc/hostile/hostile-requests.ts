/** Requests that nobody should send, for any route of the REST surface. */
import type { DescField, DescMessage, DescMethodUnary, JsonValue } from '@bufbuild/protobuf';
import { type HttpBinding, httpBindings } from '../../../../src/server/http/rest/http-rule.js';

/** One REST route: a method's binding. */
export type Route = { method: DescMethodUnary; binding: HttpBinding };

/** What to send besides the key; `what` names it in a test. */
export type Hostile = {
  what: string;
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
};

const MIB = 1024 * 1024;
const DEEP = 100_000;

/** Values of every type and some of none, as JSON text. */
const VALUES: readonly string[] = [
  'null',
  'true',
  '0',
  '-1',
  '1.5',
  '1e999',
  '99999999999999999999',
  '""',
  '"x"',
  '"\\u0000"',
  '"\\ud800"',
  `"${'x'.repeat(70_000)}"`,
  '[]',
  '[[{}]]',
  '{}',
  '{"a":{"a":{"a":[]}}}',
  '{"__proto__":{"x":1},"constructor":{"prototype":{}}}',
];

const BODIES: readonly (string | Uint8Array)[] = [
  ...VALUES,
  '{',
  '}',
  '{"',
  '{"a":1,}',
  '{} {}',
  "{'a':1}",
  '\ufeff{}',
  '\0',
  '//',
  ' '.repeat(1_000),
  Buffer.from([0xff, 0xfe, 0x7b, 0x7d]),
  Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]),
  '['.repeat(DEEP),
  '{"a":'.repeat(DEEP),
  `{"metadata":${'{"a":'.repeat(DEEP)}1${'}'.repeat(DEEP)}}`,
  `{"a":"${'x'.repeat(MIB)}"}`,
  `{${Array.from({ length: 20_000 }, (_, i) => `"m${i}":${i}`).join()}}`,
];

const TEXTS: readonly string[] = [
  '',
  '%',
  '%zz',
  '%00',
  '%ff',
  '%ed%a0%80',
  '%2e%2e',
  '%2f',
  '..',
  '*',
  '{id}',
  '-1',
  '0',
  '201',
  '1e999',
  'NaN',
  'true',
  'null',
  '[]',
  '0000-00-00T00:00:00Z',
  '+275760-09-13T00:00:00.000Z',
  '99999999999999999999',
  "';DROP%20TABLE%20submission;--",
  '%F0%9F%98%80',
  'x'.repeat(65),
  'x'.repeat(4_000),
];

const TYPES: readonly string[] = [
  'text/plain',
  'application/json; charset=utf-16',
  'application/grpc',
  'application/proto',
  'multipart/form-data; boundary=x',
  ';;;',
];

const METHODS: readonly string[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'];

/** Every route of these methods. */
export function routesOf(methods: readonly DescMethodUnary[]): Route[] {
  return methods.flatMap((method) => httpBindings(method).map((binding) => ({ method, binding })));
}

/** Everything hostile that a route can be sent. */
export function hostileRequests({ method, binding }: Route): Hostile[] {
  const { httpMethod } = binding;
  const path = pathOf(binding, 'sub_01JX5WQ3ZZZZZZZZZZZZZZZZZZ');
  const send = (what: string, more: Partial<Hostile>): Hostile => ({
    what,
    method: httpMethod,
    path,
    ...more,
  });
  const json = { 'content-type': 'application/json' };
  return [
    ...hostileBodies(method.input).map((body) =>
      send(`body ${body.toString().slice(0, 60)}`, { body, headers: json }),
    ),
    ...queriesOf(method.input).map((query) =>
      send(`query ${query.slice(0, 60)}`, { path: `${path}?${query}` }),
    ),
    ...TEXTS.filter(() => binding.template.variables.length > 0).map((text) =>
      send(`path ${text.slice(0, 60)}`, { path: pathOf(binding, text) }),
    ),
    ...TYPES.map((type) => send(`type ${type}`, { body: '{}', headers: { 'content-type': type } })),
    ...['gzip', 'br', 'identity', 'x, y'].map((encoding) =>
      send(`encoding ${encoding}`, { body: '{}', headers: { ...json, 'content-encoding': encoding } }),
    ),
    ...METHODS.map((other) => send(`method ${other}`, { method: other })),
    ...['"', '*, *', 'W/', 'x'.repeat(8_000)].map((tag) =>
      send('etag', { headers: { 'if-none-match': tag } }),
    ),
    ...['a b', 'x'.repeat(256), '"'].map((key) => send('key', { headers: { 'idempotency-key': key } })),
    ...['/', '//', '/..', '/%2e%2e/', ';a', ':verb', '%3averb'].map((end) =>
      send(`end ${end}`, { path: path + end }),
    ),
  ];
}

/** Bodies that are no message of this type, or an unlikely one. */
export function hostileBodies(desc: DescMessage): (string | Uint8Array)[] {
  return [...BODIES, ...wronglyTyped(desc)];
}

/** Each member of the message with a value of each type, alone and among others. */
function wronglyTyped(desc: DescMessage): string[] {
  return desc.fields.flatMap((field) => [
    ...VALUES.map((value) => `{"${field.name}":${value}}`),
    ...nestedFields(field).flatMap((name) => VALUES.map((value) => `{"${field.name}":{"${name}":${value}}}`)),
    `{"${field.name}":1,"${field.name}":{}}`,
    `{"${field.name}":{},"${field.name}":null}`,
  ]);
}

function nestedFields(field: DescField): string[] {
  if (field.message === undefined) return [];
  return field.message.typeName === 'google.protobuf.Struct'
    ? ['schema', 'purl']
    : field.message.fields.map(({ name }) => name);
}

function queriesOf(desc: DescMessage): string[] {
  const names = [...desc.fields.map(({ name }) => name), 'unknown', '__proto__', 'a.b', 'a[]', '%00'];
  const long = Array.from({ length: 1_000 }, (_, i) => `n${i}=1`).join('&');
  return [
    ...names.flatMap((name) => TEXTS.map((text) => `${name}=${text}`)),
    ...names.map((name) => `${name}=1&${name}=2`),
    ...names.map((name) => `${name}.${name}=1`),
    '%',
    '&&&=&=',
    '=',
    '?',
    long,
  ];
}

function pathOf({ template }: HttpBinding, value: string): string {
  const texts = template.segments.map((segment) => (segment.kind === 'literal' ? segment.text : value));
  return `/${texts.join('/')}`;
}

/** A member of parsed JSON that is an object. */
export function objectAt(json: JsonValue | undefined, name: string): Record<string, JsonValue> {
  const value = typeof json === 'object' && json !== null && !Array.isArray(json) ? json[name] : undefined;
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}
