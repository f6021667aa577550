/** Every RPC of the public API, found in the generated code: one that is added later is in here by itself. */
import { readdir } from 'node:fs/promises';
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  getOption,
  type JsonObject,
  type JsonValue,
  type Message,
  type MessageInitShape,
} from '@bufbuild/protobuf';
import { Access, rules } from '../../../gen/attestation/options/v1/options_pb.js';
import type { HttpBody } from '../../../gen/google/api/httpbody_pb.js';
import { type HttpBinding, httpBindings } from '../../../src/server/http/rest/http-rule.js';
import { isHttpBody } from '../../../src/server/http/rest/request.js';
import { compileWriter } from '../../../src/server/json/codec.js';

const FOLDER = new URL('../../../gen/attestation/v1/', import.meta.url);
const GENERATED = /_pb\.(?:ts|js)$/;

/** The services of `attestation.v1`, by name. */
export async function publicServices(): Promise<DescService[]> {
  const files = (await readdir(FOLDER)).filter((name) => GENERATED.test(name));
  const modules = await Promise.all(files.map((name) => import(new URL(name, FOLDER).href)));
  return modules
    .flatMap((exported) => Object.values(exported) as Partial<DescService>[])
    .filter((value): value is DescService => value?.kind === 'service')
    .sort((a, b) => a.typeName.localeCompare(b.typeName));
}

/** Their methods, which are all unary. */
export async function publicMethods(): Promise<DescMethodUnary[]> {
  return (await publicServices()).flatMap(({ methods }) => methods as DescMethodUnary[]);
}

/** Those that want an API key. */
export async function keyedMethods(): Promise<DescMethodUnary[]> {
  return (await publicMethods()).filter((method) => getOption(method, rules).access === Access.UNSPECIFIED);
}

/** `BatchService/GetBatch`. */
export function rpcName({ parent, name }: DescMethodUnary): string {
  return `${parent.name}/${name}`;
}

/** An HTTP request of the REST surface. */
export type RestRequest = {
  method: string;
  path: string;
  body: JsonObject | undefined;
  /** A body that is no JSON. */
  raw?: HttpBody;
};

/** The body of a request as it is sent, and its type if it is no JSON. */
export function bodyOf({ body, raw }: RestRequest): {
  body: JsonObject | Uint8Array | undefined;
  headers: Record<string, string>;
} {
  return raw === undefined
    ? { body, headers: {} }
    : { body: raw.data, headers: { 'content-type': raw.contentType } };
}

/** A message as the REST request that its method's `google.api.http` option makes of it. */
export function restRequest<I extends DescMessage>(
  method: DescMethodUnary<I>,
  input: MessageInitShape<I>,
): RestRequest {
  const sent = findRaw(method, input);
  if (sent !== undefined) return sent;
  const write = compileWriter(method.input as DescMessage) as (message: Message) => string;
  const members = JSON.parse(write(create(method.input, input))) as JsonObject;
  const binding = httpBindings(method).find((candidate) => fits(candidate, members));
  if (binding === undefined) throw new Error(`no path of ${method.name} fits ${JSON.stringify(members)}`);
  const inPath = binding.template.variables.map(({ fieldPath }) => fieldPath.join('.'));
  const rest = Object.entries(members).filter(([name, value]) => !inPath.includes(name) && value !== '');
  const path = pathOf(binding, members);
  if (binding.body === '*') {
    return { method: binding.httpMethod, path, body: Object.fromEntries(rest) };
  }
  const query = new URLSearchParams(
    rest.map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  return {
    method: binding.httpMethod,
    path: query === '' ? path : `${path}?${query}`,
    body: undefined,
  };
}

/** The request of a method whose body is a field of bytes of any type, and whose path has no variables. */
function findRaw<I extends DescMessage>(
  method: DescMethodUnary<I>,
  input: MessageInitShape<I>,
): RestRequest | undefined {
  const [binding] = httpBindings(method);
  const field = method.input.fields.find(({ name }) => name === binding?.body);
  if (binding === undefined || field?.message === undefined || !isHttpBody(field.message)) return undefined;
  const raw = (create(method.input, input) as unknown as Record<string, HttpBody>)[field.localName];
  return { method: binding.httpMethod, path: pathOf(binding, {}), body: undefined, ...(raw && { raw }) };
}

/** Whether the literal segments of the path's variables are what the message has there. */
function fits({ template }: HttpBinding, members: JsonObject): boolean {
  return template.variables.every(({ fieldPath, start, end }) => {
    const [segment] = template.segments.slice(start, end);
    return segment?.kind !== 'literal' || members[fieldPath.join('.')] === segment.text;
  });
}

function pathOf({ template }: HttpBinding, members: JsonObject): string {
  const texts = template.segments.map((segment, at) => {
    if (segment.kind === 'literal') return segment.text;
    const variable = template.variables.find(({ start }) => start === at);
    return encodeURIComponent(String(members[variable?.fieldPath.join('.') ?? ''] as JsonValue));
  });
  return `/${texts.join('/')}`;
}
