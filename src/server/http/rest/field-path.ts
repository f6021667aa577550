import { create, type DescField, type DescMessage, type JsonValue, ScalarType } from '@bufbuild/protobuf';
import { isWrapperDesc } from '@bufbuild/protobuf/wkt';
import { compileItemCodec } from '../../json/codec.js';
import {
  asFields,
  type FieldSetter,
  type Fields,
  fieldSetter,
  findFieldValue,
  isJsonObject,
} from '../../json/message-codec.js';
import { type Reading, report, reportAt } from '../../json/problems.js';
import { isTextual } from '../../json/well-known-types.js';
import { decodeExceptSlash, decodePercent } from '../request-target.js';
import type { Template, Variable } from './http-rule.js';

/**
 * The fields that a path of proto names leads through, the last one being what it names; undefined when there is no
 * such field, or when the path leads through anything but singular messages.
 */
export function findFieldPath(desc: DescMessage, names: readonly string[]): DescField[] | undefined {
  const fields: DescField[] = [];
  let at: DescMessage | undefined = desc;
  for (const name of names) {
    const field: DescField | undefined = at?.fields.find((candidate) => candidate.name === name);
    if (field === undefined) return undefined;
    fields.push(field);
    at = field.fieldKind === 'message' && isPlain(field.message) ? field.message : undefined;
  }
  return fields;
}

/** Whether the JSON of a type is an object of its fields. */
function isPlain(desc: DescMessage): boolean {
  return !isWrapperDesc(desc) && desc.file.proto.package !== 'google.protobuf';
}

/** Sets the field at the end of a path from text; wrong text is a problem at the place the reading stands at. */
export type TextSetter = (text: string, message: Fields, reading: Reading) => void;

/** Makes the setter for a path of fields; a list is added to. Undefined if text cannot represent the last field. */
export function findTextSetter(fields: readonly DescField[]): TextSetter | undefined {
  const leaf = fields[fields.length - 1] as DescField;
  const read = findTextReader(leaf);
  if (read === undefined) return undefined;
  const set = leaf.fieldKind === 'list' ? appender(leaf) : fieldSetter(leaf);
  return (text, message, reading) => {
    const value = read(text, reading);
    const parent = value === undefined ? undefined : reachParent(message, fields, reading);
    if (parent !== undefined) set(parent, value, reading);
  };
}

function appender({ localName }: DescField): FieldSetter {
  return (message, value) => {
    (message[localName] as unknown[]).push(value);
  };
}

/**
 * The message that holds the last field of a path, made with all that lead to it where they are missing; undefined
 * when another member of a oneof is in the way, which is noted as a problem.
 */
function reachParent(root: Fields, fields: readonly DescField[], reading: Reading): Fields | undefined {
  let message = root;
  for (const field of fields.slice(0, -1)) {
    let next = findFieldValue(field, message) as Fields | undefined;
    if (next === undefined) {
      next = asFields(create(field.message as DescMessage));
      fieldSetter(field)(message, next, reading);
      if (findFieldValue(field, message) === undefined) return undefined;
    }
    message = next;
  }
  return message;
}

/** A JSON body and the field of the message that it is, undefined when it is the whole message. */
export type BodyJson = { value: JsonValue; field: string | undefined };

/** Sets the fields that a path gives, from its segments as they were sent; the body must not give them again. */
type PathReader = (
  segments: readonly string[],
  message: Fields,
  reading: Reading,
  body: BodyJson | undefined,
) => void;

/** Makes the reader of a template's variables. Throws if one is no field, or of a type that text cannot represent. */
export function compilePathReader(desc: DescMessage, template: Template): PathReader {
  const variables = template.variables.map((variable) => compileVariable(desc, variable));
  return (segments, message, reading, body) => {
    for (const read of variables) read(segments, message, reading, body);
  };
}

function compileVariable(desc: DescMessage, variable: Variable): PathReader {
  const { fieldPath } = variable;
  const name = fieldPath.join('.');
  const fields = findFieldPath(desc, fieldPath);
  const leaf = fields?.at(-1);
  if (fields === undefined || leaf === undefined) throw new Error(`${desc.typeName} has no field ${name}`);
  const isScalar = leaf.fieldKind === 'scalar' || leaf.fieldKind === 'enum';
  const set = isScalar ? findTextSetter(fields) : undefined;
  if (set === undefined) throw new Error(`${name} is repeated or a message: no path can hold it`);
  return (segments, message, reading, body) => {
    const text = variableText(variable, segments);
    const given = body && findMember(body, fieldPath);
    if (given !== undefined) {
      report({ path: given, problems: reading.problems }, 'is given by the path');
    } else if (text === undefined) {
      reportAt(reading, name, 'is not percent-encoded UTF-8');
    } else {
      reading.path.push(name);
      set(text, message, reading);
      reading.path.pop();
    }
  };
}

/** The decoded text of a variable; undefined when its encoding is malformed. */
function variableText({ start, end, isMulti }: Variable, segments: readonly string[]): string | undefined {
  if (!isMulti) return decodePercent(segments[start] ?? '');
  return decodeExceptSlash(segments.slice(start, end).join('/'));
}

/** The way through the body to the member that a field path names, if the body has it. */
function findMember({ value, field }: BodyJson, fieldPath: readonly string[]): string[] | undefined {
  if (field !== undefined && fieldPath[0] !== field) return undefined;
  const path = field === undefined ? [...fieldPath] : fieldPath.slice(1);
  let at: JsonValue | undefined = value;
  for (const name of path) {
    if (at === undefined || !isJsonObject(at) || !Object.hasOwn(at, name)) return undefined;
    at = at[name];
  }
  return path;
}

/** Reads a field's value, or one item of its list, from a path segment or query parameter. */
type TextReader = (text: string, reading: Reading) => unknown;

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Compiles the reader of a field that a single text can represent: scalars, enums, time stamps, durations, wrappers.
 * Undefined for other types and for maps.
 */
export function findTextReader(field: DescField): TextReader | undefined {
  if (field.fieldKind === 'map') return undefined;
  if (field.message !== undefined && !isWrapperDesc(field.message) && !isTextual(field.message))
    return undefined;
  const { read } = compileItemCodec(field, new Map());
  const toJson = textToJson(field);
  return (text, reading) => read(toJson(text), reading);
}

/** Converts text to the JSON value of the field's type; returns other text unchanged, which the codec rejects. */
function textToJson(field: DescField): (text: string) => JsonValue {
  if (field.enum !== undefined) return (text) => text;
  if (field.message !== undefined && isTextual(field.message)) return restorePlus;
  switch (field.message === undefined ? field.scalar : field.message.fields[0]?.scalar) {
    case ScalarType.STRING:
      return (text) => text;
    case ScalarType.BYTES:
      return restorePlus;
    case ScalarType.BOOL:
      return (text) => (text === 'true' ? true : text === 'false' ? false : text);
    default:
      return (text) => (NUMBER.test(text) ? Number(text) : text);
  }
}

/** Restores an unescaped `+`, which URL decoding turned into a space, in values that cannot contain spaces. */
function restorePlus(text: string): string {
  return text.replaceAll(' ', '+');
}
