/**
 * The rules that most requests have, checked without protovalidate: `required`, `enum.defined_only`, and of texts `pattern`,
 * `min_len` and `max_len`.
 */
import {
  type DescField,
  type DescMessage,
  getOption,
  hasOption,
  isFieldSet,
  type Message,
} from '@bufbuild/protobuf';
import { FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt';
import {
  EnumRulesSchema,
  type FieldRules,
  field as fieldRules,
  Ignore,
  message as messageRules,
  type StringRules,
  StringRulesSchema,
} from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
import type { Fields } from '../../json/message-codec.js';

/** Whether a message certainly keeps the `buf.validate` rules of its type; of one that does not the library says what is wrong. */
type KeepsRules = (message: Fields) => boolean;
type IsValid = (value: unknown) => boolean;

/** The check of what has no rules. */
const always = () => true;

/**
 * Compiles the check of a message type. Returns undefined if the type, or one in it, has rules of another kind: then only
 * the library knows.
 */
export function compilePlainRules(desc: DescMessage): KeepsRules | undefined {
  return compileMessage(desc, []);
}

function compileMessage(desc: DescMessage, outer: readonly DescMessage[]): KeepsRules | undefined {
  // The well-known types have no rules; some are held as values of another form.
  if (desc.file.proto.package === 'google.protobuf') return always;
  if (outer.includes(desc) || desc.oneofs.length > 0 || hasOption(desc, messageRules)) return undefined;
  const checks: KeepsRules[] = [];
  for (const field of desc.fields) {
    const check = compileField(field, [...outer, desc]);
    if (check === undefined) return undefined;
    if (check !== always) checks.push(check);
  }
  return checks.length === 0 ? always : (message) => checks.every((check) => check(message));
}

function compileField(field: DescField, outer: readonly DescMessage[]): KeepsRules | undefined {
  const rules = hasOption(field, fieldRules) ? getOption(field, fieldRules) : undefined;
  const isValid = rules === undefined || isPlain(rules) ? compileValue(field, rules, outer) : undefined;
  if (isValid === undefined) return undefined;
  const isRequired = rules?.required === true;
  if (!isRequired && isValid === always) return always;
  const { localName } = field;
  if (!isRequired) return (message) => message[localName] === undefined || isValid(message[localName]);
  const unset = unsetValue(field);
  return (message) => {
    const value = message[localName];
    return value !== undefined && value !== unset && isValid(value);
  };
}

/** What a field without presence holds if it is not set: the kinds that {@link compileValue} takes have no other. */
function unsetValue({ presence, fieldKind }: DescField): '' | 0 | undefined {
  if (presence !== FeatureSet_FieldPresence.IMPLICIT) return undefined;
  return fieldKind === 'enum' ? 0 : '';
}

function isPlain(rules: FieldRules): boolean {
  const { ignore, cel, celExpression, $unknown } = rules;
  return ignore === Ignore.UNSPECIFIED && cel.length + celExpression.length === 0 && $unknown === undefined;
}

/** The check of a value that is set. */
function compileValue(
  field: DescField,
  rules: FieldRules | undefined,
  outer: readonly DescMessage[],
): IsValid | undefined {
  if (field.fieldKind === 'message') {
    return rules?.type.case === undefined ? compileNested(field.message, outer) : undefined;
  }
  if (rules !== undefined) return compileRule(field, rules.type);
  if (field.message === undefined) return always;
  return compileNested(field.message, outer) === always ? always : undefined;
}

function compileNested(desc: DescMessage, outer: readonly DescMessage[]): IsValid | undefined {
  const check = compileMessage(desc, outer);
  if (check === undefined || check === always) return check && always;
  return (value) => check(value as Fields);
}

/** The check of the one rule of a text or an enum. */
function compileRule(field: DescField, type: FieldRules['type']): IsValid | undefined {
  if (field.fieldKind === 'scalar' && type.case === 'string') return compileText(type.value);
  if (field.fieldKind !== 'enum' || type.case !== 'enum') return undefined;
  if (!hasOnly(EnumRulesSchema, type.value, ['defined_only']) || !type.value.definedOnly) return undefined;
  const numbers = new Set<unknown>(field.enum.values.map(({ number }) => number));
  return (value) => numbers.has(value);
}

function compileText(rules: StringRules): IsValid | undefined {
  if (!hasOnly(StringRulesSchema, rules, ['pattern', 'min_len', 'max_len'])) return undefined;
  const pattern = new RegExp(rules.pattern, 'u');
  // Lengths are in code points, of which a text has half as many as code units at least. An unset minimum is 0.
  const least = 2 * Number(rules.minLen) - 1;
  const most = isFieldSet(rules, StringRulesSchema.field.maxLen)
    ? Number(rules.maxLen)
    : Number.POSITIVE_INFINITY;
  return (value) =>
    typeof value === 'string' && value.length >= least && value.length <= most && pattern.test(value);
}

/** Whether of all rules of a kind none but these are set. */
function hasOnly(desc: DescMessage, rules: Message, names: readonly string[]): boolean {
  if (rules.$unknown !== undefined) return false;
  return desc.fields.every((field) => names.includes(field.name) || !isFieldSet(rules, field));
}
