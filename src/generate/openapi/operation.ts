import { type DescMethod, type DescService, getOption, type JsonObject } from '@bufbuild/protobuf';
import {
  Access,
  BucketSchema,
  type MethodRules,
  rules as rulesOption,
} from '../../../gen/attestation/options/v1/options_pb.js';
import { enumName } from '../../protocol/enum-names.js';
import { type HttpBinding, httpBindings } from '../../server/http/rest/http-rule.js';
import { isHttpBody } from '../../server/http/rest/request.js';
import { commentOf, summaryOf, withoutSummary } from './comment.js';
import { pascal } from './error-schema.js';

/** One RPC by one of its REST paths. */
export type Operation = {
  method: DescMethod;
  rules: MethodRules;
  binding: HttpBinding;
  /** Which of the RPC's paths it is. */
  index: number;
  httpMethod: string;
  /** The document's form: variables in braces by name. */
  path: string;
  bodyKind: 'json' | 'raw' | 'none';
};

/** The operations of services that can be called by REST with or without an API key. */
export function operationsOf(services: readonly DescService[]): Operation[] {
  return services
    .flatMap(({ methods }) => methods)
    .flatMap((method) => {
      const rules = getOption(method, rulesOption);
      if (rules.access === Access.ADMIN) return [];
      return httpBindings(method).map((binding, index) => ({
        method,
        rules,
        binding,
        index,
        httpMethod: binding.httpMethod,
        path: pathOf(binding),
        bodyKind: bodyKindOf(method, binding),
      }));
    });
}

/** Summary, description and id of an operation. */
export function describe({ method, rules, index, binding }: Operation): JsonObject {
  const comment = commentOf(method);
  const scopes = rules.scope === '' ? [] : [rules.scope, ...rules.moreScopes];
  const cost = rules.cost > 1 ? [`Counts as ${rules.cost} ${enumName(BucketSchema, rules.bucket)}.`] : [];
  const summary = summaryOf(comment);
  const detail = index === 0 ? '' : ` (${literalVariables(binding).join(', ') || index + 1})`;
  return {
    tags: [tagOf(method.parent)],
    operationId: operationId(method, index),
    summary: `${summary}${detail}`,
    description: [withoutSummary(comment, summary), [...scopesText(scopes), ...cost].join(' ')]
      .filter((text) => text !== '')
      .join('\n\n'),
    'x-rpc': `${method.parent.typeName}/${method.name}`,
    security: rules.access === Access.PUBLIC ? [] : [{ api_key: scopes }],
  };
}

function scopesText(scopes: readonly string[]): string[] {
  if (scopes.length === 0) return [];
  return [
    `Needs the scope${scopes.length === 1 ? '' : 's'} ${scopes.map((one) => `\`${one}\``).join(' and ')}.`,
  ];
}

/** The name of a service without its last word. */
export function tagOf({ name }: DescService): string {
  return name.replace(/Service$/, '');
}

/** The RPC's name; for further paths with the words of fixed variables that the first path lacks. */
function operationId(method: DescMethod, index: number): string {
  if (index === 0) return method.localName;
  const bindings = httpBindings(method);
  const words = bindings.map((binding) =>
    literalVariables(binding).flatMap((text) => text.split(/[^A-Za-z0-9]+/)),
  );
  const own = (words[index] ?? []).filter((word) => !words[0]?.includes(word));
  return `${method.localName}${own.map(pascal).join('') || index + 1}`;
}

/** Values of a path's variables with a single value. */
function literalVariables({ template }: HttpBinding): string[] {
  return template.variables.flatMap(({ start, end }) =>
    template.segments
      .slice(start, end)
      .flatMap((segment) => (segment.kind === 'literal' ? [segment.text] : [])),
  );
}

function pathOf({ template }: HttpBinding): string {
  const parts = template.segments.flatMap((segment, at) => {
    if (segment.kind === 'literal') return [segment.text];
    const variable = template.variables.find(
      ({ start, end }) => start <= at && (end === undefined || at < end),
    );
    return variable === undefined || variable.start < at ? [] : [`{${variable.fieldPath.join('.')}}`];
  });
  return `/${parts.join('/')}`;
}

function bodyKindOf({ input }: DescMethod, { body }: HttpBinding): Operation['bodyKind'] {
  if (body === '') return 'none';
  const type = body === '*' ? input : input.fields.find(({ name }) => name === body)?.message;
  return type !== undefined && isHttpBody(type) ? 'raw' : 'json';
}
