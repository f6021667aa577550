import {
  type DescField,
  type DescMessage,
  type JsonValue,
  type Message,
  ScalarType,
} from '@bufbuild/protobuf';
import { isWrapperDesc, TimestampSchema, ValueSchema } from '@bufbuild/protobuf/wkt';
import { type Fields, findFieldValue } from './message-codec.js';
import { invalidRequest, type Reading, report, startReading } from './problems.js';
import { checkFreeForm, checkText } from './strict-json.js';
import { isTimestamp, type Seconds } from './well-known-types.js';

/** Reports problems of a value that is set. */
type Check = (value: unknown, reading: Reading) => void;

/**
 * Compiles the check of binary and ProtoJSON messages for values that the REST reader rejects: text that cannot be
 * stored, numbers that JSON cannot represent, time stamps outside the years 1 to 9999. The check throws
 * `request.invalid` with every problem. Compile once per type.
 */
export function compileMessageCheck(desc: DescMessage): (message: Message) => void {
  const check = messageCheck(desc, new Map());
  return (message) => {
    const reading = startReading();
    check(message, reading);
    if (reading.problems.length > 0) throw invalidRequest(reading.problems);
  };
}

function messageCheck(desc: DescMessage, compiled: Map<DescMessage, Check>): Check {
  const known = compiled.get(desc);
  if (known !== undefined) return known;
  const fields: [field: DescField, check: Check][] = [];
  const check: Check = (message, reading) => {
    for (const [field, checkField] of fields) {
      const value = findFieldValue(field, message as Fields);
      if (value !== undefined) at(field.name, value, checkField, reading);
    }
  };
  compiled.set(desc, check);
  for (const field of desc.fields) {
    const checkField = findFieldCheck(field, compiled);
    if (checkField !== undefined) fields.push([field, checkField]);
  }
  return check;
}

function findFieldCheck(field: DescField, compiled: Map<DescMessage, Check>): Check | undefined {
  const item = findItemCheck(field, compiled);
  if (field.fieldKind === 'map') return mapCheck(item);
  if (field.fieldKind !== 'list' || item === undefined) return item;
  return (items, reading) => {
    for (const [index, value] of (items as unknown[]).entries()) at(index, value, item, reading);
  };
}

function mapCheck(item: Check | undefined): Check {
  return (map, reading) => {
    for (const [key, value] of Object.entries(map as Fields)) {
      at(key, key, checkString, reading);
      if (item !== undefined) at(key, value, item, reading);
    }
  };
}

/** The check of a field's value, or of one item of its list or map. Undefined if every value is valid. */
function findItemCheck(field: DescField, compiled: Map<DescMessage, Check>): Check | undefined {
  if (field.message === undefined) return field.scalar === ScalarType.STRING ? checkString : undefined;
  if (isWrapperDesc(field.message)) return checkWrapped;
  switch (field.message.typeName) {
    case 'google.protobuf.Struct':
      // Fields hold it as a plain JSON object, except those of Value.
      if (field.parent.typeName === ValueSchema.typeName) return messageCheck(field.message, compiled);
      return (json, reading) => checkFreeForm(json as JsonValue, reading);
    case TimestampSchema.typeName:
      return checkTimestamp;
    default:
      return messageCheck(field.message, compiled);
  }
}

function at(step: string | number, value: unknown, check: Check, reading: Reading): void {
  reading.path.push(step);
  check(value, reading);
  reading.path.pop();
}

function checkString(text: unknown, reading: Reading): void {
  checkText(text as string, reading);
}

/** Outside a oneof a field of a wrapper type holds the scalar itself. */
function checkWrapped(value: unknown, reading: Reading): void {
  const held = typeof value === 'object' ? (value as Fields).value : value;
  if (typeof held === 'string') checkText(held, reading);
}

function checkTimestamp(value: unknown, reading: Reading): void {
  if (!isTimestamp(value as Seconds)) report(reading, 'must be a time from the year 1 to 9999');
}
