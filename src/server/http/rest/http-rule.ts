import { type DescMethod, getOption, hasOption } from '@bufbuild/protobuf';
import { http } from '../../../../gen/google/api/annotations_pb.js';
import type { HttpRule } from '../../../../gen/google/api/http_pb.js';

/** One HTTP binding of an RPC: its `google.api.http` option, checked for form. */
export type HttpBinding = {
  /** GET, POST, … */
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

/** One segment of a path template: literal text, its verb included, `*` (exactly one) or `**` (all that follow). */
type Segment = { kind: 'literal'; text: string } | { kind: 'one' } | { kind: 'rest' };

/** A variable of a template: which field it sets, from which of the template's segments. */
export type Variable = {
  /** Proto names from the request message down to a field. */
  fieldPath: readonly string[];
  /** Its first segment, and the one after its last; undefined when it goes on to the end of the path. */
  start: number;
  end: number | undefined;
  /** Whether it can hold several segments: then an encoded slash stays encoded. */
  isMulti: boolean;
};

/** A path template of `google.api.http`, parsed. */
export type Template = {
  source: string;
  segments: readonly Segment[];
  variables: readonly Variable[];
};

/** The parser's position in the template, and its findings. */
type Parser = { source: string; at: number; segments: Segment[]; variables: Variable[] };

// The unreserved characters of RFC 3986, which are the same to every router.
const LITERAL = /[A-Za-z0-9._~-]+/y;
const FIELD_PATH = /[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*/y;

/**
 * Parses a path template by the grammar in google/api/http.proto, of which a verb is taken after a literal only:
 *
 *     Template = "/" Segments [ Verb ] ;           Segments = Segment { "/" Segment } ;
 *     Segment  = "*" | "**" | LITERAL | Variable ; Variable = "{" FieldPath [ "=" Segments ] "}" ;
 *     Verb     = ":" LITERAL ;                     FieldPath = IDENT { "." IDENT } ;
 *
 * Throws an Error that names the template and the column.
 */
export function parseTemplate(source: string): Template {
  const parser: Parser = { source, at: 0, segments: [], variables: [] };
  expect(parser, '/');
  parseSegments(parser, true);
  if (take(parser, ':')) addVerb(parser);
  if (parser.at < source.length) fail(parser, `unexpected ${JSON.stringify(source[parser.at])}`);
  const rest = parser.segments.findIndex(({ kind }) => kind === 'rest');
  if (rest >= 0 && rest < parser.segments.length - 1) fail(parser, '** is only allowed as the last segment');
  return { source, segments: parser.segments, variables: parser.variables };
}

function addVerb(parser: Parser): void {
  const last = parser.segments.at(-1);
  if (last?.kind !== 'literal') fail(parser, 'a verb is only allowed after a literal');
  last.text += `:${parseLiteral(parser, 'a verb')}`;
}

/**
 * The URL pattern of a template for Fastify's router. Templates that match the same paths have the same pattern.
 *
 * @returns such as `/v1/books/:s2/pages/*`
 */
export function routePattern({ segments }: Template): string {
  const texts = segments.map((segment, index) => {
    if (segment.kind === 'literal') return segment.text.replace(':', '::');
    return segment.kind === 'one' ? `:s${index}` : '*';
  });
  return `/${texts.join('/')}`;
}

/** A pattern of the paths that a template matches. */
export function pathPattern({ segments }: Template): RegExp {
  const texts = segments.map((segment) => {
    if (segment.kind === 'literal') return `/${segment.text.replaceAll('.', '\\.')}`;
    return segment.kind === 'one' ? '/[^/]+' : '/.*';
  });
  return new RegExp(`^${texts.join('')}$`);
}

function parseSegments(parser: Parser, allowVariables: boolean): void {
  do {
    if (take(parser, '{')) parseVariable(parser, allowVariables);
    else if (take(parser, '**')) parser.segments.push({ kind: 'rest' });
    else if (take(parser, '*')) parser.segments.push({ kind: 'one' });
    else parser.segments.push({ kind: 'literal', text: parseLiteral(parser, 'a segment') });
  } while (take(parser, '/'));
}

function parseVariable(parser: Parser, allowVariables: boolean): void {
  if (!allowVariables) fail(parser, 'a variable inside a variable');
  const name = match(parser, FIELD_PATH) ?? fail(parser, 'expected a field path');
  const fieldPath = name.split('.');
  if (parser.variables.some((other) => other.fieldPath.join('.') === name))
    fail(parser, `${name} is bound twice`);
  const start = parser.segments.length;
  if (take(parser, '=')) parseSegments(parser, false);
  else parser.segments.push({ kind: 'one' });
  expect(parser, '}');
  const end = parser.segments.at(-1)?.kind === 'rest' ? undefined : parser.segments.length;
  parser.variables.push({ fieldPath, start, end, isMulti: end !== start + 1 });
}

function parseLiteral(parser: Parser, what: string): string {
  const text = match(parser, LITERAL) ?? fail(parser, `expected ${what}`);
  // Clients resolve dot segments before they send a request (RFC 3986, 5.2.4).
  if (text === '.' || text === '..') fail(parser, 'a dot segment never matches');
  return text;
}

function match(parser: Parser, pattern: RegExp): string | undefined {
  pattern.lastIndex = parser.at;
  const text = pattern.exec(parser.source)?.[0];
  parser.at += text?.length ?? 0;
  return text;
}

function take(parser: Parser, text: string): boolean {
  if (!parser.source.startsWith(text, parser.at)) return false;
  parser.at += text.length;
  return true;
}

function expect(parser: Parser, text: string): void {
  if (!take(parser, text)) fail(parser, `expected ${JSON.stringify(text)}`);
}

function fail(parser: Parser, message: string): never {
  throw new Error(`path template ${JSON.stringify(parser.source)}, column ${parser.at + 1}: ${message}`);
}
