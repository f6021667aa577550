import { type DescEnum, getOption } from '@bufbuild/protobuf';
import { spelling } from '../gen/attestation/options/v1/options_pb.js';

/** The documented spelling of an enum value, `live` for `Environment.LIVE`; throws when it has none. */
export function spellingOf(desc: DescEnum, number: number): string {
  const value = desc.value[number];
  const text = value && getOption(value, spelling);
  if (!text) throw new Error(`${desc.typeName} has no spelling for ${number}`);
  return text;
}

/** The number of the enum value with this documented spelling, or undefined. */
export function findBySpelling(desc: DescEnum, text: string): number | undefined {
  return desc.values.find((value) => getOption(value, spelling) === text && text !== '')?.number;
}

/** Every documented spelling of an enum, in the order of its values. */
export function spellings(desc: DescEnum): string[] {
  return desc.values.map((value) => getOption(value, spelling)).filter((text) => text !== '');
}
