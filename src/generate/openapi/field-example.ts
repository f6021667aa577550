import { type DescField, getOption, hasOption, type JsonValue, ScalarType } from '@bufbuild/protobuf';
import { default_value, example as exampleOption } from '../../../gen/attestation/options/v1/options_pb.js';
import { isTextual } from '../../server/json/well-known-types.js';

/** A field's example in its proto, as JSON; undefined if there is none. Throws, naming the field, if it is not JSON. */
export function findExample(field: DescField): JsonValue | undefined {
  return hasOption(field, exampleOption) ? jsonOf(field, getOption(field, exampleOption)) : undefined;
}

/** A field's default in requests, likewise. */
export function findDefault(field: DescField): JsonValue | undefined {
  return hasOption(field, default_value) ? jsonOf(field, getOption(field, default_value)) : undefined;
}

function jsonOf(field: DescField, text: string): JsonValue {
  if (isText(field)) return text;
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new Error(`${field.parent.typeName}.${field.name}: ${text} is no JSON`, { cause: error });
  }
}

/** Whether the field is one JSON string. */
function isText(field: DescField): boolean {
  switch (field.fieldKind) {
    case 'scalar':
      return field.scalar === ScalarType.STRING || field.scalar === ScalarType.BYTES;
    case 'enum':
      return true;
    case 'message':
      return isTextual(field.message);
    default:
      return false;
  }
}
