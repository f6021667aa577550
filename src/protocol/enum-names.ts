import { type DescEnum, getOption } from '@bufbuild/protobuf';
import { spelling } from '../../gen/attestation/options/v1/options_pb.js';

/** An enum's documented spellings by number, in the order of its values. Reading an option is slow, so it is done once. */
const SPELLINGS = new WeakMap<DescEnum, ReadonlyMap<number, string>>();

function spellingsByNumber(desc: DescEnum): ReadonlyMap<number, string> {
  const known = SPELLINGS.get(desc);
  if (known !== undefined) return known;
  const read = desc.values.map((value): [number, string] => [value.number, getOption(value, spelling)]);
  const spelled = new Map(read.filter(([, text]) => text !== ''));
  SPELLINGS.set(desc, spelled);
  return spelled;
}

/** The documented spelling of an enum value, `live` for `Environment.LIVE`; throws when it has none. */
export function spellingOf(desc: DescEnum, number: number): string {
  const text = spellingsByNumber(desc).get(number);
  if (text === undefined) throw new Error(`${desc.typeName} has no spelling for ${number}`);
  return text;
}

/** The number of the enum value with this documented spelling, or undefined. */
export function findBySpelling(desc: DescEnum, text: string): number | undefined {
  for (const [number, spelled] of spellingsByNumber(desc)) if (spelled === text) return number;
  return undefined;
}

/** Every documented spelling of an enum, in the order of its values. */
export function spellings(desc: DescEnum): string[] {
  return [...spellingsByNumber(desc).values()];
}
