import { type DescField, getOption, hasOption, type JsonValue, ScalarType } from '@bufbuild/protobuf';
import { example as exampleOption } from '../../../gen/attestation/options/v1/options_pb.js';
import { isTextual } from '../../json/well-known.js';

/** The example of a field that its proto gives, as JSON; undefined without one. Throws, naming the field, when it is no JSON. */
export function findExample(field: DescField): JsonValue | undefined {
  if (!hasOption(field, exampleOption)) return undefined;
  const text = getOption(field, exampleOption);
  if (isText(field)) return text;
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new Error(`${field.parent.typeName}.${field.name}: its example is no JSON`, { cause: error });
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
