import { type DescMethod, getOption, hasOption } from '@bufbuild/protobuf';
import { http } from '../../../../gen/google/api/annotations_pb.js';
import type { HttpRule } from '../../../../gen/google/api/http_pb.js';
import { parseTemplate, type Template } from './template.js';

/** One way to reach an RPC by HTTP: what its `google.api.http` option says, checked for form. */
export type HttpBinding = {
  /** GET, POST, …; `*` for any. */
  httpMethod: string;
  template: Template;
  /** `*`, the name of a field, or '' for none. */
  body: string;
  /** The name of a field, or '' for the whole message. */
  responseBody: string;
};

// RFC 9110, 5.6.2.
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

/** The bindings of an RPC, additional ones last; none when it has no REST path. Throws on a rule it cannot follow. */
export function httpBindings(method: DescMethod): HttpBinding[] {
  if (!hasOption(method, http)) return [];
  const rule = getOption(method, http);
  if (rule.additionalBindings.some((extra) => extra.additionalBindings.length > 0)) {
    throw new Error('additional_bindings inside additional_bindings');
  }
  return [rule, ...rule.additionalBindings].map(parseRule);
}

function parseRule(rule: HttpRule): HttpBinding {
  const [httpMethod, path] = methodAndPath(rule);
  if (!TOKEN.test(httpMethod)) throw new Error(`${JSON.stringify(httpMethod)} is not an HTTP method`);
  const isBodyless = httpMethod === 'GET' || httpMethod === 'HEAD';
  if (isBodyless && rule.body !== '') throw new Error(`${httpMethod} ${path} cannot have a body`);
  return { httpMethod, template: parseTemplate(path), body: rule.body, responseBody: rule.responseBody };
}

function methodAndPath({ pattern }: HttpRule): [string, string] {
  if (pattern.case === undefined) throw new Error('an http rule without a path');
  if (pattern.case === 'custom') return [pattern.value.kind, pattern.value.path];
  return [pattern.case.toUpperCase(), pattern.value];
}
