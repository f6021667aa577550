import { type DescField, getOption, type JsonObject, type JsonValue, ScalarType } from '@bufbuild/protobuf';
import { FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt';
import { Ignore } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { omit_empty as omitEmpty } from '../../../gen/attestation/options/v1/options_pb.js';
import { admitsNumber, findRules } from '../../server/json/field-rules.js';
import type { Direction } from './components.js';

const ajv = formats.default(new Ajv2020({ strict: false }));

/**
 * Whether a member is required. In requests: if its rules say so, or reject zero, the value of a missing member; rules
 * that ignore zero do not. In responses: if its rules say so, and fields that REST JSON always contains
 * (src/server/json/message-codec.ts).
 */
export function isRequired(field: DescField, direction: Direction, schemaOf: () => JsonObject): boolean {
  const rules = findRules(field);
  if (rules?.required) return true;
  if (field.presence !== FeatureSet_FieldPresence.IMPLICIT) return false;
  if (direction === 'response') return field.fieldKind !== 'enum' && !getOption(field, omitEmpty);
  if (rules !== undefined && rules.ignore !== Ignore.UNSPECIFIED) return false;
  if (field.fieldKind === 'enum') return !admitsNumber(rules, 0);
  return !ajv.validate(withoutItems(schemaOf()), zeroOf(field));
}

/** The value of a missing member. */
function zeroOf(field: DescField): JsonValue {
  if (field.fieldKind === 'list') return [];
  if (field.fieldKind === 'map') return {};
  switch (field.scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return '';
    case ScalarType.BOOL:
      return false;
    default:
      return 0;
  }
}

/** The rules of a list or map without those of its items: the zero value has none. */
function withoutItems({ items, additionalProperties, ...rest }: JsonObject): JsonObject {
  return rest;
}
