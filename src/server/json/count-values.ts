import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { ValueSchema } from '@bufbuild/protobuf/wkt';

/** Fields of a message that can contain a `google.protobuf.Value`, by number. */
type Ways = Map<number, { isValue: boolean; ways: Ways }>;

/** Decoders reject deeper messages; a level of JSON is three levels here. */
const MAX_DEPTH = 300;
/** Field number of the value in a map entry. */
const MAP_VALUE_FIELD = 2;

/**
 * Compiles the check whether a binary message has more than `max` `google.protobuf.Value`s in its Structs,
 * without decoding it. The result for malformed bytes is unspecified. Undefined if the type holds none.
 */
export function compileCount(desc: DescMessage): ((bytes: Uint8Array, max: number) => boolean) | undefined {
  const ways = findWays(desc, new Map());
  if (ways.size === 0) return undefined;
  return (bytes, max) => {
    try {
      return countWithin(new BinaryReader(bytes), bytes.length, ways, { left: max, depth: 0 }) < 0;
    } catch {
      return false;
    }
  };
}

/** Counts down from `left` and stops below zero. */
function countWithin(
  reader: BinaryReader,
  end: number,
  ways: Ways,
  { left, depth }: { left: number; depth: number },
): number {
  let remaining = left;
  while (reader.pos < end && remaining >= 0) {
    const [number, wireType] = reader.tag();
    const way = wireType === WireType.LengthDelimited ? ways.get(number) : undefined;
    if (way === undefined) {
      reader.skip(wireType, number);
      continue;
    }
    const length = reader.uint32();
    const inner = reader.pos + length;
    if (way.isValue) remaining--;
    if (depth < MAX_DEPTH) {
      remaining = countWithin(reader, inner, way.ways, { left: remaining, depth: depth + 1 });
    }
    reader.pos = inner;
  }
  return remaining;
}

function findWays(desc: DescMessage, known: Map<DescMessage, Ways>): Ways {
  const found = known.get(desc);
  if (found !== undefined) return found;
  const ways: Ways = new Map();
  known.set(desc, ways);
  for (const field of desc.fields) {
    if (field.message === undefined || !leadsToValue(field.message, new Set())) continue;
    const way = {
      isValue: field.message.typeName === ValueSchema.typeName,
      ways: findWays(field.message, known),
    };
    ways.set(field.number, field.fieldKind === 'map' ? entryOf(way) : way);
  }
  return ways;
}

function entryOf(way: { isValue: boolean; ways: Ways }): { isValue: boolean; ways: Ways } {
  return { isValue: false, ways: new Map([[MAP_VALUE_FIELD, way]]) };
}

function leadsToValue(desc: DescMessage, seen: Set<DescMessage>): boolean {
  if (desc.typeName === ValueSchema.typeName) return true;
  if (seen.has(desc)) return false;
  seen.add(desc);
  return desc.fields.some(({ message }: DescField) => message !== undefined && leadsToValue(message, seen));
}
