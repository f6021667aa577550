import { create, type DescField, type DescMessage } from '@bufbuild/protobuf';
import { isWrapperDesc } from '@bufbuild/protobuf/wkt';
import { asFields, type FieldSetter, type Fields, fieldSetter, findFieldValue } from '../../json/field.js';
import type { Reading } from '../../json/problems.js';
import { findTextReader } from '../../json/text-reader.js';

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
