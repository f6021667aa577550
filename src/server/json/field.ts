import type { DescField } from '@bufbuild/protobuf';
import { type Reading, report } from './problems.js';
import type { Fields } from './value.js';

/** Sets a field of a message; a second member of a oneof is a problem at the place the reading stands at. */
export type FieldSetter = (message: Fields, value: unknown, reading: Reading) => void;

/** Makes the setter of a field. */
export function fieldSetter(field: DescField): FieldSetter {
  const { localName, oneof } = field;
  if (oneof === undefined) {
    return (message, value) => {
      message[localName] = value;
    };
  }
  const names = new Map(oneof.fields.map((member) => [member.localName, member.name]));
  return (message, value, reading) => {
    const set = message[oneof.localName] as { case: string | undefined };
    if (set.case === undefined) message[oneof.localName] = { case: localName, value };
    else report(reading, `excludes ${names.get(set.case)}, which is given too`);
  };
}

/** What a field holds, or undefined when it is not set. */
export function findFieldValue(field: DescField, message: Fields): unknown {
  if (field.oneof === undefined) return message[field.localName];
  const set = message[field.oneof.localName] as { case: string | undefined; value: unknown };
  return set.case === field.localName ? set.value : undefined;
}
