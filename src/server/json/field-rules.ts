import { type DescEnum, type DescField, getOption, hasOption } from '@bufbuild/protobuf';
import {
  type FieldRules,
  field as fieldOption,
} from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
import { enumNames, findEnumNumber } from '../../protocol/enum-names.js';

/** The rules of a field; undefined if it has none. */
export function findRules(field: DescField): FieldRules | undefined {
  return hasOption(field, fieldOption) ? getOption(field, fieldOption) : undefined;
}

/** The rules of one item of a list, or of a map's values. */
export function findItemRules(rules: FieldRules | undefined): FieldRules | undefined {
  switch (rules?.type.case) {
    case 'repeated':
      return rules.type.value.items;
    case 'map':
      return rules.type.value.values;
    default:
      return undefined;
  }
}

/** Whether the rules admit a number of an enum. */
export function admitsNumber(rules: FieldRules | undefined, number: number): boolean {
  if (rules?.type.case !== 'enum') return true;
  const { in: only, notIn } = rules.type.value;
  return (only.length === 0 || only.includes(number)) && !notIn.includes(number);
}

/** The names that the rules of an enum field, or of its items, admit, in the order of its values. */
export function admittedNames(field: DescField & { enum: DescEnum }): string[] {
  const rules = findRules(field);
  const itemRules = findItemRules(rules) ?? rules;
  return enumNames(field.enum).filter((text) =>
    admitsNumber(itemRules, findEnumNumber(field.enum, text) ?? 0),
  );
}
