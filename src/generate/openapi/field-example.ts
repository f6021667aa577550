import { type DescField, getOption, hasOption, type JsonValue, ScalarType } from '@bufbuild/protobuf';
import { default_value, example as exampleOption } from '../../../gen/attestation/options/v1/options_pb.js';
import { isTextual } from '../../server/json/well-known-codec.js';

/** The example of a field that its proto gives, as JSON; undefined without one. Throws, naming the field, when it is no JSON. */
export function findExample(field: DescField): JsonValue | undefined {
  return hasOption(field, exampleOption) ? jsonOf(field, getOption(field, exampleOption)) : undefined;
}

/** What stands for a field that a request leaves out, likewise. */
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
