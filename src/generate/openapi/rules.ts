import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { reflect } from '@bufbuild/protobuf/reflect';
import { type FieldRules, FieldRulesSchema } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';

/** Rules of `buf.validate` with an equivalent keyword of JSON Schema. */
const KEYWORDS: Readonly<Record<string, string>> = {
  min_len: 'minLength',
  max_len: 'maxLength',
  max_bytes: 'maxLength',
  pattern: 'pattern',
  gt: 'exclusiveMinimum',
  gte: 'minimum',
  lt: 'exclusiveMaximum',
  lte: 'maximum',
  min_items: 'minItems',
  max_items: 'maxItems',
  min_pairs: 'minProperties',
  max_pairs: 'maxProperties',
  unique: 'uniqueItems',
  const: 'const',
  in: 'enum',
};

/** Rules that are a format of JSON Schema. */
const FORMATS = new Set(['email', 'hostname', 'ipv4', 'ipv6', 'uri', 'uuid']);

/** The rules of the value's type as keywords of JSON Schema. Rules without a keyword are left out. */
export function ruleKeywords(rules: FieldRules | undefined): JsonObject {
  const keywords: JsonObject = {};
  for (const [name, value] of rulesByName(rules)) Object.assign(keywords, keywordsOf(name, value));
  return keywords;
}

function rulesByName(rules: FieldRules | undefined): [string, unknown][] {
  const kind = rules?.type.case;
  if (rules === undefined || kind === undefined) return [];
  const desc = FieldRulesSchema.fields.find(({ localName }) => localName === kind)?.message;
  if (desc === undefined) throw new Error(`rules of an unknown kind: ${kind}`);
  const message = reflect(desc, rules.type.value as never);
  return desc.fields
    .filter((field) => message.isSet(field))
    .map((field) => [
      field.name,
      field.fieldKind === 'list' ? [...message.get(field)] : (message.get(field) as unknown),
    ]);
}

function keywordsOf(name: string, value: unknown): JsonObject {
  const keyword = KEYWORDS[name];
  if (keyword !== undefined) return { [keyword]: asJson(value) };
  if (FORMATS.has(name)) return { format: name };
  switch (name) {
    case 'len':
      return { minLength: asJson(value), maxLength: asJson(value) };
    case 'prefix':
      return { pattern: `^${escapePattern(String(value))}` };
    case 'suffix':
      return { pattern: `${escapePattern(String(value))}$` };
    case 'contains':
      return { pattern: escapePattern(String(value)) };
    case 'not_in':
      return { not: { enum: asJson(value) } };
    default:
      return {};
  }
}

function asJson(value: unknown): JsonValue {
  if (Array.isArray(value)) return value.map(asJson);
  return typeof value === 'bigint' ? Number(value) : (value as JsonValue);
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}
