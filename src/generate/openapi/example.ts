import {
  type DescField,
  type DescMessage,
  getOption,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from '@bufbuild/protobuf';
import { FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt';
import { omit_empty as omitEmpty, spelling } from '../../../gen/attestation/options/v1/options_pb.js';
import { admitsNumber, findRules } from '../../server/json/field-rules.js';
import type { Components, Direction } from './components.js';
import { findExample } from './field-example.js';
import { isRequired } from './required.js';
import { findWellKnownSchema } from './scalar.js';
import { valueSchema } from './schema.js';

/** Defaults if a proto has no example. */
const WELL_KNOWN: Readonly<Record<string, JsonValue>> = {
  'google.protobuf.Timestamp': '2026-01-02T03:04:05.678Z',
  'google.protobuf.Duration': '60s',
  'google.protobuf.Struct': {},
  'google.protobuf.ListValue': [],
};

/** Context of an example: its direction and the enclosing messages. */
type Place = { components: Components; direction: Direction; within: readonly DescMessage[] };

/**
 * An example of a message, or of some of its fields: the examples of their protos, and required fields. Undefined if a
 * required field has no example.
 */
export function findMessageExample(
  components: Components,
  desc: DescMessage,
  direction: Direction,
  fields: readonly DescField[] = desc.fields,
): JsonObject | undefined {
  return messageExample({ components, direction, within: [] }, desc, fields);
}

function messageExample(
  place: Place,
  desc: DescMessage,
  fields: readonly DescField[],
): JsonObject | undefined {
  const inside = { ...place, within: [...place.within, desc] };
  const members: JsonObject = {};
  for (const field of fields) {
    const value = findExample(field) ?? (isShown(place, field) ? valueExample(inside, field) : undefined);
    if (value !== undefined) members[field.name] = value;
    else if (isNeeded(place, field)) return undefined;
  }
  return members;
}

function isNeeded({ components, direction }: Place, field: DescField): boolean {
  return isRequired(field, direction, () => valueSchema(components, field, direction));
}

/** Whether a field without an example appears. */
function isShown(place: Place, field: DescField): boolean {
  const isPlain = field.presence === FeatureSet_FieldPresence.IMPLICIT && !getOption(field, omitEmpty);
  return (isPlain && place.direction === 'response') || isNeeded(place, field);
}

function valueExample(place: Place, field: DescField): JsonValue | undefined {
  if (field.fieldKind === 'map') return {};
  if (field.message !== undefined) {
    const value = heldExample(place, field.message);
    return field.fieldKind === 'list' ? (value === undefined ? [] : [value]) : value;
  }
  const value = field.enum === undefined ? scalarExample(field, place.direction) : enumExample(field);
  return field.fieldKind === 'list' && place.direction === 'response' ? [] : value;
}

function heldExample(place: Place, message: DescMessage): JsonValue | undefined {
  if (findWellKnownSchema(message) !== undefined) return WELL_KNOWN[message.typeName];
  return place.within.includes(message) ? undefined : messageExample(place, message, message.fields);
}

function enumExample(field: DescField): JsonValue | undefined {
  return field.enum?.values
    .filter(({ number }) => admitsNumber(findRules(field), number))
    .map((value) => getOption(value, spelling))
    .find((text) => text !== '');
}

/** In a response, an unset scalar is its type's zero. A required member of a request has no default example. */
function scalarExample(field: DescField, direction: Direction): JsonValue | undefined {
  if (direction === 'request' || findRules(field) !== undefined) return undefined;
  switch (field.scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return '';
    case ScalarType.BOOL:
      return true;
    default:
      return 1;
  }
}
