import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { Ajv2020, ErrorObject } from 'ajv/dist/2020.js';
import { isAbsent } from './absent.js';

/** Keywords that fail as a whole: their parts are alternatives. */
const CHOICES = ['anyOf', 'oneOf', 'contains'] as const;

type Alternative = { required?: string[]; type?: string | string[] };

/**
 * Has ajv report a choice as one error: its alternatives leave empty objects. 64 KiB of metadata have room for 65,000
 * failed alternatives, of which nothing is shown.
 */
export function quietChoices({ RULES }: Ajv2020): void {
  for (const keyword of CHOICES) {
    const rule = RULES.all[keyword];
    if (typeof rule !== 'object' || !('code' in rule.definition)) throw new Error(`ajv has no ${keyword}`);
    const { definition } = rule;
    rule.definition = {
      ...definition,
      code(cxt, ruleType) {
        const subschema = cxt.subschema.bind(cxt);
        cxt.subschema = (applied, valid) => subschema({ ...applied, createErrors: false }, valid);
        definition.code(cxt, ruleType);
      },
    };
  }
}

/** The subject of a failed choice if it has one: the names of members, or the types of the value. */
export function summariseChoice({ schema, data }: ErrorObject): { names?: string[]; types?: string[] } {
  const alternatives = schema as (Alternative | boolean)[];
  const names = alternatives.map((one) => missingNames(one, data as JsonValue));
  if (names.every((some) => some.length > 0)) return { names: names.flat() };
  const types = alternatives.map((one) => otherTypes(one, data as JsonValue));
  return types.every((some) => some.length > 0) ? { types: types.flat() } : {};
}

function missingNames(alternative: Alternative | boolean, value: JsonValue): string[] {
  if (typeof alternative === 'boolean' || typeOf(value) !== 'object') return [];
  const isMissing = (name: string) =>
    !Object.hasOwn(value as JsonObject, name) || isAbsent((value as JsonObject)[name]);
  return alternative.required?.filter(isMissing) ?? [];
}

/** The types that the alternative asks for when the value has none of them. */
function otherTypes(alternative: Alternative | boolean, value: JsonValue): string[] {
  if (typeof alternative === 'boolean' || alternative.type === undefined) return [];
  const types = [alternative.type].flat();
  const isOne = (type: string) =>
    type === typeOf(value) || (type === 'integer' && Number.isInteger(value) && typeof value === 'number');
  return types.some(isOne) ? [] : types;
}

function typeOf(value: JsonValue): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
}
