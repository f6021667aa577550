import { type DescEnum, getOption } from '@bufbuild/protobuf';
import { spelling } from '../../gen/attestation/options/v1/options_pb.js';

/** An enum's documented spellings by number, in the order of its values. Reading an option is slow, so it is done once. */
const ENUM_NAMES = new WeakMap<DescEnum, ReadonlyMap<number, string>>();

function namesByNumber(desc: DescEnum): ReadonlyMap<number, string> {
  const known = ENUM_NAMES.get(desc);
  if (known !== undefined) return known;
  const read = desc.values.map((value): [number, string] => [value.number, getOption(value, spelling)]);
  const spelled = new Map(read.filter(([, text]) => text !== ''));
  ENUM_NAMES.set(desc, spelled);
  return spelled;
}

/** The documented spelling of an enum value, `live` for `Environment.LIVE`; throws when it has none. */
export function enumName(desc: DescEnum, number: number): string {
  const text = namesByNumber(desc).get(number);
  if (text === undefined) throw new Error(`${desc.typeName} has no spelling for ${number}`);
  return text;
}

/** The number of the enum value with this documented spelling, or undefined. */
export function findEnumNumber(desc: DescEnum, text: string): number | undefined {
  for (const [number, spelled] of namesByNumber(desc)) if (spelled === text) return number;
  return undefined;
}

/** Every documented spelling of an enum, in the order of its values. */
export function enumNames(desc: DescEnum): string[] {
  return [...namesByNumber(desc).values()];
}
