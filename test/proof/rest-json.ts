import {
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  toJson,
} from '@bufbuild/protobuf';

/** A message in the REST surface's spelling, as far as bundles and trust roots go. */
export function restJson<D extends DescMessage>(schema: D, message: MessageShape<D>): JsonObject {
  return respell(toJson(schema, message, { useProtoFieldName: true })) as JsonObject;
}

const ENUM_NAME = /^(?:ENVIRONMENT|WITNESS_KIND)_([A-Z0-9_]+)$/;
const NUMERIC = new Set(['tree_size', 'first_index', 'chain_id']);

function respell(json: JsonValue, name = ''): JsonValue {
  if (name === 'sigstore_bundle' || name === 'detail') return json;
  if (Array.isArray(json)) return json.map((item) => respell(item));
  if (typeof json === 'object' && json !== null) {
    return Object.fromEntries(Object.entries(json).map(([key, value]) => [key, respell(value, key)]));
  }
  if (typeof json !== 'string') return json;
  return NUMERIC.has(name) ? Number(json) : (ENUM_NAME.exec(json)?.[1]?.toLowerCase() ?? json);
}
