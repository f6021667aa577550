/** What a message must keep to before a handler gets it, whichever way it came. */
import {
  type DescField,
  type DescMessage,
  type DescOneof,
  getOption,
  hasOption,
  type JsonValue,
  type Message,
  ScalarType,
} from '@bufbuild/protobuf';
import type { Path } from '@bufbuild/protobuf/reflect';
import { isWrapperDesc, TimestampSchema, ValueSchema } from '@bufbuild/protobuf/wkt';
import { createValidator, type Violation } from '@bufbuild/protovalidate';
import { form } from '../../../../gen/attestation/options/v1/options_pb.js';
import { jsonPointer } from '../../../protocol/json-pointer.js';
import { MAX_PROBLEMS, type Problem } from '../../../protocol/problem.js';
import { admittedNames } from '../../json/field-rules.js';
import type { Fields } from '../../json/message-codec.js';
import { invalidRequest, type Reading, report, startReading } from '../../json/problems.js';
import { checkFreeForm, checkText } from '../../json/strict-json.js';
import { isTimestamp, type Seconds } from '../../json/well-known-types.js';
import { createStructHiding } from './hide-structs.js';

/**
 * Makes the check of messages against the `buf.validate` rules of their protos. It throws `request.invalid` with
 * every broken rule at the JSON pointer of its field; rules that cannot be evaluated are an ordinary Error.
 */
export function createValidate(): (desc: DescMessage, message: Message) => void {
  const validator = createValidator({ regexMatch });
  const withoutStructs = createStructHiding();
  return (desc, message) => {
    const { kind, error, violations } = withoutStructs(desc, message, () =>
      validator.validate(desc, message),
    );
    if (kind === 'error') throw error;
    if (kind === 'invalid') {
      const more = Math.max(0, violations.length - MAX_PROBLEMS);
      throw invalidRequest(Object.assign(violations.slice(0, MAX_PROBLEMS).map(asProblem), { more }));
    }
  };
}

/** Patterns compiled by JavaScript's engine: the library's takes 15 µs for a digest, this one 0.1. */
const PATTERNS = new Map<string, RegExp>();

function regexMatch(pattern: string, against: string): boolean {
  let compiled = PATTERNS.get(pattern);
  if (compiled === undefined) {
    compiled = new RegExp(pattern, 'u');
    PATTERNS.set(pattern, compiled);
  }
  return compiled.test(against);
}

/** Ours read as a predicate after the pointer: "/limit must be …", "/title is required". */
const WORDING: readonly [theirs: RegExp, ours: string][] = [
  [/^must be at least 1 characters$|^must contain at least 1 item\(s\)$/, 'must not be empty'],
  [/^repeated value must contain unique items$/, 'must not hold an item twice'],
  [/^one of (.+) must be set$/, 'must have one of $1'],
  [/^value /, ''],
];

function asProblem({ field, message, ruleId }: Violation): Problem {
  const last = field.findLast((step) => step.kind === 'field');
  return {
    path: jsonPointer(stepsOf(field)),
    message: (last && findOwnWords(last, ruleId)) ?? inOurWords(message),
  };
}

/** The constraint of a field as the proto words it. */
function findOwnWords(field: DescField, ruleId: string): string | undefined {
  if (field.enum !== undefined && ruleId.startsWith('enum.')) {
    return `must be one of ${admittedNames(field).join(', ')}`;
  }
  return ruleId === 'string.pattern' && hasOption(field, form)
    ? `must be ${getOption(field, form)}`
    : undefined;
}

function inOurWords(message: string): string {
  return WORDING.reduce((text, [theirs, ours]) => text.replace(theirs, ours), message);
}

/** The members that lead to a field; a oneof is none, so a rule of one stands at its message. */
function stepsOf(path: Path): (string | number)[] {
  return path.flatMap((step): (string | number)[] => {
    switch (step.kind) {
      case 'field':
        return [step.name];
      case 'list_sub':
        return [step.index];
      case 'map_sub':
        return [String(step.key)];
      default:
        return [];
    }
  });
}

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
  const members: MemberCheck[] = [];
  const check: Check = (message, reading) => {
    for (const checkMember of members) checkMember(message as Fields, reading);
  };
  compiled.set(desc, check);
  for (const member of desc.members) {
    const checkMember =
      member.kind === 'oneof' ? findOneofCheck(member, compiled) : findMemberCheck(member, compiled);
    if (checkMember !== undefined) members.push(checkMember);
  }
  return check;
}

/** Reports problems of one member of a message, if that is set. */
type MemberCheck = (message: Fields, reading: Reading) => void;

function findMemberCheck(field: DescField, compiled: Map<DescMessage, Check>): MemberCheck | undefined {
  const check = findFieldCheck(field, compiled);
  if (check === undefined) return undefined;
  const { localName, name } = field;
  return (message, reading) => {
    const value = message[localName];
    if (value !== undefined) at(name, value, check, reading);
  };
}

/** A message holds the one field of a oneof that is set, with its value, under the name of the oneof. */
function findOneofCheck(
  { localName, fields }: DescOneof,
  compiled: Map<DescMessage, Check>,
): MemberCheck | undefined {
  const checks = new Map<string | undefined, [name: string, check: Check]>();
  for (const field of fields) {
    const check = findFieldCheck(field, compiled);
    if (check !== undefined) checks.set(field.localName, [field.name, check]);
  }
  if (checks.size === 0) return undefined;
  return (message, reading) => {
    const { case: set, value } = message[localName] as { case: string | undefined; value?: unknown };
    const found = checks.get(set);
    if (found !== undefined) at(found[0], value, found[1], reading);
  };
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
