import { type DescField, type DescMessage, getOption, hasOption, ScalarType } from '@bufbuild/protobuf';
import type { FieldRules } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
import { max_bytes as maxBytesOption } from '../../../gen/attestation/options/v1/options_pb.js';
import { enumNames } from '../../protocol/enum-names.js';
import { findItemRules, findRules } from './field-rules.js';

/** Maximum size of a message in any of its encodings. */
export type Bound = {
  /** Of its bytes, as REST JSON, ProtoJSON or binary. */
  maxBytes: number;
  /** Of the values in its Structs. */
  maxValues: number;
  /** Of `maxBytes`, those of lists whose proto says how long they are, whatever other bodies may be. */
  listBytes: number;
};

/** For white space between members, and for unknown fields of clients that are newer. */
const SPARE_BYTES = 4 * 1024;
/** Maximum size of a byte of canonical JSON: as an escape, or as a `google.protobuf.Value` in binary. */
const ENCODED_BYTES = 6;
/** Maximum size of a character: two escapes. */
const CHARACTER_BYTES = 12;
/** Maximum size of a byte in base64. */
const BASE64_BYTES = 1.5;
/** A number, a time stamp, a duration, a bool. */
const SCALAR_BYTES = 48;
/** Minimum size of a value in canonical JSON: one byte and a separator. */
const VALUE_BYTES = 2;
/** Quotes, colon and comma of a member, or tag and length. */
const MEMBER_BYTES = 12;

/**
 * Maximum size of a message that satisfies the rules of its proto. Undefined if they do not bound the length of a field,
 * or if the message type is recursive.
 */
export function findBound(desc: DescMessage): Bound | undefined {
  const size = messageSize(desc, new Set());
  if (!Number.isFinite(size.bytes)) return undefined;
  const maxBytes = SPARE_BYTES + size.bytes;
  return { maxBytes, maxValues: Math.ceil(size.values), listBytes: size.listBytes };
}

/** The smaller of a message's bound and `maxBytes`, to which lists add the bytes of their protos' bounds. */
export function boundBy(bound: Bound | undefined, maxBytes: number): Bound {
  if (bound === undefined) return { maxBytes, maxValues: maxBytes / VALUE_BYTES, listBytes: 0 };
  return { ...bound, maxBytes: Math.min(bound.maxBytes, maxBytes + bound.listBytes) };
}

type Size = { bytes: number; values: number; listBytes: number };

const OPEN: Size = { bytes: Number.POSITIVE_INFINITY, values: Number.POSITIVE_INFINITY, listBytes: 0 };

function messageSize(desc: DescMessage, within: ReadonlySet<DescMessage>): Size {
  if (within.has(desc)) return OPEN;
  const inside = new Set(within).add(desc);
  const total: Size = { bytes: MEMBER_BYTES, values: 0, listBytes: 0 };
  for (const field of desc.fields) {
    const { bytes, values, listBytes } = fieldSize(field, inside);
    total.bytes += MEMBER_BYTES + field.name.length + bytes;
    total.values += values;
    total.listBytes += listBytes;
  }
  return total;
}

function fieldSize(field: DescField, within: ReadonlySet<DescMessage>): Size {
  const rules = findRules(field);
  if (field.fieldKind === 'map') return OPEN;
  if (field.fieldKind !== 'list') return valueSize(field, rules, within);
  if (hasOption(field, maxBytesOption)) {
    const bytes = getOption(field, maxBytesOption);
    const hasStructs = valueSize(field, findItemRules(rules), within).values > 0;
    return { bytes, values: hasStructs ? bytes / VALUE_BYTES : 0, listBytes: bytes };
  }
  const count = rules?.type.case === 'repeated' ? rules.type.value.maxItems : 0n;
  if (count === 0n) return OPEN;
  const { bytes, values } = valueSize(field, findItemRules(rules), within);
  return { bytes: Number(count) * (MEMBER_BYTES + bytes), values: Number(count) * values, listBytes: 0 };
}

function valueSize(field: DescField, rules: FieldRules | undefined, within: ReadonlySet<DescMessage>): Size {
  const maxBytes = hasOption(field, maxBytesOption) ? getOption(field, maxBytesOption) : undefined;
  if (field.enum !== undefined) {
    const names = [...field.enum.values.map(({ name }) => name), ...enumNames(field.enum)];
    return plain(Math.max(SCALAR_BYTES, ...names.map(({ length }) => length)));
  }
  if (field.message === undefined) return plain(scalarBytes(field.scalar, rules, maxBytes));
  switch (field.message.typeName) {
    case 'google.protobuf.Struct':
      if (maxBytes === undefined) return OPEN;
      return { bytes: maxBytes * ENCODED_BYTES, values: maxBytes / VALUE_BYTES, listBytes: 0 };
    case 'google.protobuf.Timestamp':
    case 'google.protobuf.Duration':
      return plain(SCALAR_BYTES);
    case 'google.api.HttpBody':
      return maxBytes === undefined ? OPEN : plain(maxBytes * BASE64_BYTES);
    default:
      return messageSize(field.message, within);
  }
}

function plain(bytes: number): Size {
  return { bytes, values: 0, listBytes: 0 };
}

/** Maximum size of a scalar; infinite if the rules do not bound it. */
function scalarBytes(
  type: ScalarType | undefined,
  rules: FieldRules | undefined,
  maxBytes: number | undefined,
): number {
  if (type !== ScalarType.STRING && type !== ScalarType.BYTES) return SCALAR_BYTES;
  if (maxBytes !== undefined) return maxBytes * ENCODED_BYTES;
  if (rules?.type.case === 'bytes') {
    const { maxLen, len } = rules.type.value;
    return Number(maxLen || len) * ENCODED_BYTES || Number.POSITIVE_INFINITY;
  }
  if (rules?.type.case !== 'string') return Number.POSITIVE_INFINITY;
  const { maxLen, len, maxBytes: max, lenBytes, in: only } = rules.type.value;
  if (only.length > 0) return Math.max(...only.map(({ length }) => length)) * CHARACTER_BYTES;
  const bytes = Number(max || lenBytes) * ENCODED_BYTES;
  return bytes || Number(maxLen || len) * CHARACTER_BYTES || Number.POSITIVE_INFINITY;
}
