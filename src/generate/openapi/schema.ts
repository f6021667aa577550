import {
  type DescEnum,
  type DescField,
  type DescMessage,
  getOption,
  type JsonObject,
  ScalarType,
} from '@bufbuild/protobuf';
import {
  type FieldRules,
  message as messageOption,
} from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
import { spelling, text_member } from '../../../gen/attestation/options/v1/options_pb.js';
import { admitsNumber, findItemRules, findRules } from '../../server/json/field-rules.js';
import { commentOf } from './comment.js';
import { type Components, type Direction, refTo } from './components.js';
import { findExample, findNamedDefault } from './field-example.js';
import { isRequired } from './required.js';
import { ruleKeywords } from './rules.js';
import { findWellKnownSchema, scalarSchema } from './scalar.js';

/** Refers to the schema of a message and adds it and its nested messages to the components. */
export function messageRef(components: Components, desc: DescMessage, direction: Direction): JsonObject {
  const name = components.nameOf(desc, direction);
  if (!components.schemas.has(name)) {
    // A message type may be recursive.
    components.schemas.set(name, {});
    components.schemas.set(name, messageSchema(components, desc, direction, desc.fields));
  }
  return refTo('schemas', name);
}

/** The schema of a message, or of some of its fields. */
export function messageSchema(
  components: Components,
  desc: DescMessage,
  direction: Direction,
  fields: readonly DescField[],
): JsonObject {
  const required = fields.filter((field) =>
    isRequired(field, direction, () => valueSchema(components, field, direction)),
  );
  return {
    type: 'object',
    description: [commentOf(desc), ...messageRules(desc)].join('\n\n'),
    properties: Object.fromEntries(
      fields.map((field) => [field.name, fieldSchema(components, field, direction)]),
    ),
    ...(required.length === 0 ? {} : { required: required.map(({ name }) => name) }),
    ...exclusions(desc, fields),
    ...(direction === 'request' ? { additionalProperties: false } : {}),
  };
}

/** The schema of a field, with its comment and its example. */
export function fieldSchema(components: Components, field: DescField, direction: Direction): JsonObject {
  const example = findExample(field);
  return {
    ...valueSchema(components, field, direction),
    ...defaultOf(field, direction),
    description: [commentOf(field), ...celRules(findRules(field))].join('\n\n'),
    ...(example === undefined ? {} : { examples: [example] }),
  };
}

/** The keyword `default` of a request's field; empty if its proto has none. */
export function defaultOf(field: DescField, direction: Direction): JsonObject {
  const value = direction === 'request' ? findNamedDefault(field) : undefined;
  return value === undefined ? {} : { default: value };
}

/** The schema of a field's value, lists and maps included. */
export function valueSchema(components: Components, field: DescField, direction: Direction): JsonObject {
  const rules = findRules(field);
  if (field.fieldKind === 'list') {
    const items = itemSchema(components, field, findItemRules(rules), direction);
    return { type: 'array', items, ...ruleKeywords(rules) };
  }
  if (field.fieldKind === 'map') {
    const values = itemSchema(components, field, findItemRules(rules), direction);
    return { type: 'object', additionalProperties: values, ...ruleKeywords(rules) };
  }
  return itemSchema(components, field, rules, direction);
}

function itemSchema(
  components: Components,
  field: DescField,
  rules: FieldRules | undefined,
  direction: Direction,
): JsonObject {
  if (field.enum !== undefined) return enumSchema(components, field.enum, rules, direction);
  if (field.message !== undefined) {
    const wellKnown = findWellKnownSchema(field.message);
    return wellKnown === undefined
      ? messageRef(components, field.message, direction)
      : { ...wellKnown, ...textMember(field), ...ruleKeywords(rules) };
  }
  const schema = scalarSchema(field.scalar);
  // Rules about bytes apply to the bytes before base64.
  return field.scalar === ScalarType.BYTES ? schema : { ...schema, ...ruleKeywords(rules) };
}

/** The required member of a free-form object, if its proto names one. */
function textMember(field: DescField): JsonObject {
  const name = getOption(field, text_member);
  return name === '' ? {} : { properties: { [name]: { type: 'string', minLength: 1 } }, required: [name] };
}

/** An enum by name, or the values that the field's rules admit. */
function enumSchema(
  components: Components,
  desc: DescEnum,
  rules: FieldRules | undefined,
  direction: Direction,
): JsonObject {
  const spelled = desc.values.filter((value) => getOption(value, spelling) !== '');
  const admitted = spelled.filter(({ number }) => admitsNumber(rules, number));
  const texts = (values: DescEnum['values']) => values.map((value) => getOption(value, spelling));
  if (admitted.length < spelled.length) return { type: 'string', enum: texts(admitted) };
  const name = components.nameOf(desc, direction);
  const meanings = spelled.map((value) => `- \`${getOption(value, spelling)}\`: ${commentOf(value)}`);
  components.schemas.set(name, {
    type: 'string',
    description: `${commentOf(desc)}\n\n${meanings.join('\n')}`,
    enum: texts(spelled),
  });
  return refTo('schemas', name);
}

/** The constraint of each oneof: at most one of its members. */
function exclusions(desc: DescMessage, fields: readonly DescField[]): JsonObject {
  const groups = desc.oneofs.map((oneof) => oneof.fields.filter((field) => fields.includes(field)));
  const rules = groups.filter((group) => group.length > 1).map(atMostOne);
  return rules.length === 0 ? {} : { allOf: rules };
}

function atMostOne(group: readonly DescField[]): JsonObject {
  const given = group.map(({ name }) => ({ required: [name] }));
  return { oneOf: [...given, { not: { anyOf: given } }] };
}

function messageRules(desc: DescMessage): string[] {
  return getOption(desc, messageOption).cel.map(({ message, expression }) => message || expression);
}

function celRules(rules: FieldRules | undefined): string[] {
  return rules?.cel.map(({ message, expression }) => message || expression) ?? [];
}
