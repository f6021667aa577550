import { type DescEnum, getOption } from '@bufbuild/protobuf';
import { spelling } from '../../gen/attestation/options/v1/options_pb.js';

/** Names of each enum's values on REST (the proto option `spelling`) by number. Cached: reading an option is slow. */
const ENUM_NAMES = new WeakMap<DescEnum, ReadonlyMap<number, string>>();

/** All names of an enum by number, in the order of its values. To be looked up once where a name is needed often. */
export function enumNamesByNumber(desc: DescEnum): ReadonlyMap<number, string> {
  const known = ENUM_NAMES.get(desc);
  if (known !== undefined) return known;
  const read = desc.values.map((value): [number, string] => [value.number, getOption(value, spelling)]);
  const names = new Map(read.filter(([, text]) => text !== ''));
  ENUM_NAMES.set(desc, names);
  return names;
}

/** Name of an enum value on REST, `live` for `Environment.LIVE`. Throws if it has none. */
export function enumName(desc: DescEnum, number: number): string {
  const text = enumNamesByNumber(desc).get(number);
  if (text === undefined) throw new Error(`${desc.typeName} has no name for ${number}`);
  return text;
}

/** Number of the enum value with this name; undefined if there is none. */
export function findEnumNumber(desc: DescEnum, text: string): number | undefined {
  for (const [number, name] of enumNamesByNumber(desc)) if (name === text) return number;
  return undefined;
}

/** All names of an enum, in the order of its values. */
export function enumNames(desc: DescEnum): string[] {
  return [...enumNamesByNumber(desc).values()];
}
