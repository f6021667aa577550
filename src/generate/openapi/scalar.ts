import { type DescMessage, type JsonObject, ScalarType } from '@bufbuild/protobuf';
import { isWrapperDesc } from '@bufbuild/protobuf/wkt';

const BASE64 = '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$';
const FLOAT: JsonObject = {
  oneOf: [{ type: 'number' }, { type: 'string', enum: ['NaN', 'Infinity', '-Infinity'] }],
};

/** Schema of a body of bytes: generators make bytes or a file of it, and text of a schema that says nothing. */
export const BINARY: JsonObject = { type: 'string', format: 'binary' };

/** Schema of a scalar on REST (src/server/json/scalar-codec.ts). */
export function scalarSchema(type: ScalarType): JsonObject {
  switch (type) {
    case ScalarType.STRING:
      return { type: 'string' };
    case ScalarType.BOOL:
      return { type: 'boolean' };
    case ScalarType.BYTES:
      return { type: 'string', contentEncoding: 'base64', pattern: BASE64 };
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return FLOAT;
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return { type: 'integer', format: 'int32' };
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return { type: 'integer', minimum: 0, maximum: 2 ** 32 - 1 };
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return { type: 'integer', format: 'int64', minimum: 0 };
    default:
      return { type: 'integer', format: 'int64' };
  }
}

/** Schema of a `google.protobuf` type on REST (src/server/json/well-known-codec.ts); undefined for other types. */
export function findWellKnownSchema(desc: DescMessage): JsonObject | undefined {
  if (isWrapperDesc(desc)) {
    const [value] = desc.fields;
    return value?.fieldKind === 'scalar' ? scalarSchema(value.scalar) : undefined;
  }
  return WELL_KNOWN[desc.typeName];
}

const WELL_KNOWN: Readonly<Record<string, JsonObject>> = {
  'google.protobuf.Timestamp': { type: 'string', format: 'date-time' },
  'google.protobuf.Duration': { type: 'string', pattern: '^-?[0-9]{1,12}(?:\\.[0-9]{1,9})?s$' },
  'google.protobuf.Struct': { type: 'object', additionalProperties: true },
  'google.protobuf.ListValue': { type: 'array', items: {} },
  'google.protobuf.Value': {},
};
