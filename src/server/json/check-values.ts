import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { ListValueSchema, StructSchema, ValueSchema } from '@bufbuild/protobuf/wkt';
import { jsonPointer } from '../../protocol/json-pointer.js';
import { invalidRequest } from './problems.js';
import { tooManyValues } from './strict-json.js';

/** A field that can contain a `google.protobuf.Value`. */
type Way = { step: string | undefined; isList: boolean; shape: Shape };

/** What is searched in a message, or in an entry of a map. */
type Shape = {
  kind: 'value' | 'entry' | 'other';
  /** By number. */
  ways: Map<number, Way>;
  /** Numbers of fields of which one must be there. */
  oneOf: ReadonlySet<number> | undefined;
};

/** `left`: how many more values there may be. `place`: the steps to a value without a kind. */
type Search = { left: number; depth: number; place: (string | number)[] | undefined };

/** Decoders reject deeper messages; a level of JSON is three levels here. */
const MAX_DEPTH = 300;
/** Field numbers in a map entry. */
const MAP_KEY = 1;
const MAP_VALUE = 2;
/** Messages that are JSON themselves, so that their fields are no members. */
const JSON_MESSAGES: ReadonlySet<string> = new Set(
  [StructSchema, ValueSchema, ListValueSchema].map(({ typeName }) => typeName),
);
const WITHOUT_KIND = 'is a google.protobuf.Value without a kind: set null_value for null';

/**
 * Compiles the check of the `google.protobuf.Value`s in a binary message, which does not decode it: it throws
 * `request.invalid` if there are more than `max`, and if one has no kind, which a decoder would take for null. Malformed
 * bytes may pass. Undefined if the type holds no values.
 */
export function compileValueCheck(desc: DescMessage): ((bytes: Uint8Array, max: number) => void) | undefined {
  const shape = shapeOf(desc, new Map());
  if (shape.ways.size === 0) return undefined;
  return (bytes, max) => {
    const search: Search = { left: max, depth: 0, place: undefined };
    try {
      walk(new BinaryReader(bytes), bytes.length, shape, search);
    } catch {
      return;
    }
    if (search.left < 0) throw tooManyValues(max);
    if (search.place !== undefined)
      throw invalidRequest([{ path: jsonPointer(search.place), message: WITHOUT_KIND }]);
  };
}

/** Counts down from `left` until it is below zero or a value without a kind is found. */
function walk(reader: BinaryReader, end: number, { kind, ways, oneOf }: Shape, search: Search): void {
  const start = reader.pos;
  let isWhole = oneOf === undefined;
  const counts: number[] = [];
  while (reader.pos < end && search.left >= 0 && search.place === undefined) {
    const [number, wireType] = reader.tag();
    isWhole ||= oneOf?.has(number) === true;
    const way = wireType === WireType.LengthDelimited ? ways.get(number) : undefined;
    if (way === undefined) {
      reader.skip(wireType, number);
      continue;
    }
    const length = reader.uint32();
    const inner = reader.pos + length;
    const index = way.isList ? (counts[number] ?? 0) : undefined;
    if (index !== undefined) counts[number] = index + 1;
    if (way.shape.kind === 'value') search.left--;
    if (search.depth < MAX_DEPTH) {
      search.depth++;
      walk(reader, inner, way.shape, search);
      search.depth--;
    }
    comesFrom(search, way.step, index);
    reader.pos = inner;
  }
  if (!isWhole && search.left >= 0) search.place ??= [];
  if (kind === 'entry' && search.place !== undefined) comesFrom(search, keyIn(reader, start, end));
}

/** Adds the steps that lead to the place found, if there is one. */
function comesFrom({ place }: Search, ...steps: readonly (string | number | undefined)[]): void {
  place?.unshift(...steps.filter((step) => step !== undefined));
}

/** The key of a map entry; '' by default. */
function keyIn(reader: BinaryReader, start: number, end: number): string {
  reader.pos = start;
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    if (number === MAP_KEY && wireType === WireType.LengthDelimited) return reader.string();
    reader.skip(wireType, number);
  }
  return '';
}

function shapeOf(desc: DescMessage, known: Map<DescMessage, Shape>): Shape {
  const found = known.get(desc);
  if (found !== undefined) return found;
  const isValue = desc.typeName === ValueSchema.typeName;
  const shape: Shape = {
    kind: isValue ? 'value' : 'other',
    ways: new Map(),
    oneOf: isValue ? new Set(desc.fields.map(({ number }) => number)) : undefined,
  };
  known.set(desc, shape);
  for (const field of desc.fields) {
    if (field.message === undefined || !leadsToValue(field.message, new Set())) continue;
    const inner = shapeOf(field.message, known);
    shape.ways.set(field.number, {
      step: JSON_MESSAGES.has(desc.typeName) ? undefined : field.name,
      isList: field.fieldKind === 'list',
      shape: field.fieldKind === 'map' ? entryOf(inner) : inner,
    });
  }
  return shape;
}

/** An entry without its value has an empty one. */
function entryOf(shape: Shape): Shape {
  return {
    kind: 'entry',
    ways: new Map([[MAP_VALUE, { step: undefined, isList: false, shape }]]),
    oneOf: shape.kind === 'value' ? new Set([MAP_VALUE]) : undefined,
  };
}

function leadsToValue(desc: DescMessage, seen: Set<DescMessage>): boolean {
  if (desc.typeName === ValueSchema.typeName) return true;
  if (seen.has(desc)) return false;
  seen.add(desc);
  return desc.fields.some(({ message }: DescField) => message !== undefined && leadsToValue(message, seen));
}
