/** What requests mean where they leave fields out, as the protos declare it by the option `default_value`. */
import {
  type DescField,
  type DescMessage,
  getOption,
  hasOption,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  ScalarType,
  toJson,
} from '@bufbuild/protobuf';
import { default_value } from '../../../gen/attestation/options/v1/options_pb.js';
import { canonicalJson } from '../../proof/bytes/jcs.js';
import { compileReader } from './codec.js';
import { isJsonObject } from './message-codec.js';
import { isTextual } from './well-known-types.js';

/** The default of a field as JSON of REST; undefined if its proto has none. Throws, naming the field, if it is not JSON. */
export function findDefault(field: DescField): JsonValue | undefined {
  return hasOption(field, default_value) ? optionJson(field, getOption(field, default_value)) : undefined;
}

/** The JSON of a value in an option of its field (`example`, `default_value`). Throws, naming the field, if it is not JSON. */
export function optionJson(field: DescField, text: string): JsonValue {
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

/** A message of which the fields that have a default are set, to that. Throws if one does not fit its field. */
export function defaultsOf<D extends DescMessage>(desc: D): MessageShape<D> {
  const members = desc.fields.flatMap((field): [string, JsonValue][] => {
    const value = findDefault(field);
    return value === undefined ? [] : [[field.name, value]];
  });
  return compileReader(desc)(Object.fromEntries(members));
}

/** {@link defaultsOf} as ProtoJSON, by type. Cached: the reader of a type takes long to compile. */
const DEFAULTS = new WeakMap<DescMessage, JsonObject>();

function defaultJson(desc: DescMessage): JsonObject {
  const known = DEFAULTS.get(desc);
  if (known !== undefined) return known;
  const hasDefaults = desc.fields.some((field) => hasOption(field, default_value));
  const made = hasDefaults ? (toJson(desc, defaultsOf(desc)) as JsonObject) : {};
  DEFAULTS.set(desc, made);
  return made;
}

/**
 * The ProtoJSON of a request without the members that say what leaving them out says: equal for requests that differ in
 * nothing else. A message that has a default goes without the members that its default has too, and goes itself if it has no others.
 */
export function withoutDefaults(desc: DescMessage, json: JsonObject): JsonObject {
  return strip(desc, json, defaultJson(desc));
}

function strip(desc: DescMessage, json: JsonObject, defaults: JsonObject): JsonObject {
  const kept: JsonObject = {};
  for (const field of desc.fields) {
    const { jsonName } = field;
    const value = json[jsonName];
    if (value === undefined) continue;
    const fallback = defaults[jsonName];
    const rest = isOwnMessage(field) && isJsonObject(value) ? stripMember(field, value, fallback) : value;
    if (fallback === undefined || !saysTheSame(rest, fallback)) kept[jsonName] = rest;
  }
  return kept;
}

function stripMember(
  { message }: OwnMessage,
  value: JsonObject,
  fallback: JsonValue | undefined,
): JsonObject {
  const given = fallback !== undefined && isJsonObject(fallback) ? fallback : {};
  return strip(message, value, { ...defaultJson(message), ...given });
}

/** A message that was stripped of its default's members says the same as the default if nothing is left. */
function saysTheSame(rest: JsonValue, fallback: JsonValue): boolean {
  const isLeftOut = isJsonObject(rest) && Object.keys(rest).length === 0;
  return isLeftOut || canonicalJson(rest) === canonicalJson(fallback);
}

type OwnMessage = DescField & { fieldKind: 'message'; message: DescMessage };

/** Whether the field is a message whose JSON has its fields as members, unlike that of protobuf's own types. */
function isOwnMessage(field: DescField): field is OwnMessage {
  return field.fieldKind === 'message' && !field.message.typeName.startsWith('google.protobuf.');
}
