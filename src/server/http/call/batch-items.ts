import {
  type DescField,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  fromJson,
  getOption,
  type Message,
} from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { rules as rulesOption } from '../../../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { Call, ReadItem } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import { claimedKey } from '../../core/principal.js';
import { type Bound, findBound } from '../../json/bound.js';
import { compileValueCheck } from '../../json/check-values.js';
import { compileReader } from '../../json/codec.js';
import { findRules } from '../../json/field-rules.js';
import { asFields } from '../../json/message-codec.js';
import { invalidRequest } from '../../json/problems.js';
import { type NextBytes, splitJsonList } from '../../json/split-list.js';
import { readJson } from '../../json/strict-json.js';
import { tooLarge } from '../socket/bodies.js';
import { invalidKey, isIdempotencyKey, readBatchKey } from './new-call.js';
import { compileMessageCheck } from './validate.js';

/** How the items of a body are encoded: as REST has it, or in the JSON or the binary form of protos. */
type ItemEncoding = 'rest' | 'json' | 'binary';

/** Makes the function that reads one item of a body after the other, as `Call.nextItem` does, without the rules of protos. */
export type ReadItems = (body: Uint8Array, encoding: ItemEncoding) => NextItem;

type NextItem = NonNullable<Call['nextItem']>;

/** Parses an item. Throws its own error, or `request.malformed_json`, which is the whole request's. */
type ReadMessage = (bytes: Uint8Array) => Message;

/**
 * Compiles the reader of the items of a batch; undefined for other methods. Each item is read alone, so that reading can
 * pause between two of them, and no more than one is held in any other form than its bytes. Throws if the request is not
 * one list of messages whose proto bounds it.
 */
export function findItemReader(method: DescMethodUnary): ReadItems | undefined {
  if (getOption(method, rulesOption).batchOf === '') return undefined;
  const list = itemsOf(method);
  const bound = findBound(list.message);
  if (bound === undefined) throw new Error(`${list.message.typeName} is not bounded`);
  const readers = compileReaders(list.message, bound);
  const counts = itemCounts(list);
  return (body, encoding) => {
    const next = encoding === 'binary' ? splitBinaryList(body, list) : splitJsonList(body, list.name);
    let count = 0;
    return () => {
      const bytes = next();
      if (bytes === undefined && count < counts.min) throw misCounted(list, 'must not be empty');
      if (bytes === undefined) return undefined;
      if (++count > counts.max) throw misCounted(list, `must contain no more than ${counts.max} items`);
      return readItem(bytes, bound, readers[encoding], `/${list.name}/${count - 1}`);
    };
  };
}

/**
 * Checks each item by itself: its idempotency key, as that of a call, and the rules of its proto by `validate`. An item
 * without a key has that of the call, `#` and its place, if the call has one. Keys become those that are claimed.
 */
export function checkItems(
  call: Call,
  validate: (desc: DescMessage, message: Message) => void,
  next: NextItem,
): NextItem {
  const { message: desc } = itemsOf(call.method);
  const key = desc.fields.find(({ name }) => name === 'idempotency_key');
  const callKey = readBatchKey(call);
  let count = 0;
  return () => {
    const item = next();
    const place = count++;
    if (item?.message === undefined) return item;
    const { bytes, message } = item;
    try {
      const fields = asFields(message);
      const given = key && fields[key.localName];
      if (typeof given === 'string' && !isIdempotencyKey(given)) throw invalidKey('idempotency_key');
      validate(desc, message);
      const wanted = given ?? (callKey === undefined ? undefined : `${callKey}#${place}`);
      if (key !== undefined && typeof wanted === 'string')
        fields[key.localName] = claimedKey(call.principal, wanted);
      return item;
    } catch (error) {
      if (error instanceof ApiError) return { bytes, error };
      throw error;
    }
  };
}

type ListOfMessages = DescField & { fieldKind: 'list'; message: DescMessage };

function itemsOf({ input }: DescMethodUnary): ListOfMessages {
  const [list] = input.fields;
  if (list?.fieldKind === 'list' && list.message !== undefined && input.fields.length === 1) {
    return list as ListOfMessages;
  }
  throw new Error(`${input.typeName} is not one list of messages`);
}

/** Reads one item. Its own errors are its result. */
function readItem(bytes: Uint8Array, { maxBytes }: Bound, read: ReadMessage, path: string): ReadItem {
  const { length } = bytes;
  try {
    if (length > maxBytes) return { bytes: length, error: tooLarge(maxBytes) };
    return { bytes: length, message: read(bytes) };
  } catch (error) {
    if (error instanceof MalformedItem) throw invalidRequest([{ path, message: error.message }]);
    if (!(error instanceof ApiError)) throw error;
    if (error.code === ErrorCode.REQUEST_MALFORMED_JSON)
      throw new ApiError(error.code, `${path}: ${error.message}`);
    return { bytes: length, error };
  }
}

/** The bytes of an item are no message, so that those of the others are not to be trusted. */
class MalformedItem extends Error {
  override readonly name = 'MalformedItem';
}

function compileReaders(desc: DescMessage, { maxValues }: Bound): Record<ItemEncoding, ReadMessage> {
  const readRest = compileReader(desc);
  const checkText = compileMessageCheck(desc);
  const checkValues = compileValueCheck(desc);
  const checked = (message: Message) => {
    checkText(message);
    return message;
  };
  return {
    rest: (bytes) => readRest(readJson(bytes, maxValues)),
    json: (bytes) => checked(readProtoJson(desc, bytes, maxValues)),
    binary: (bytes) => {
      checkValues?.(bytes, maxValues);
      return checked(readBinary(desc, bytes));
    },
  };
}

function readProtoJson(desc: DescMessage, bytes: Uint8Array, maxValues: number): Message {
  const json = readJson(bytes, maxValues);
  try {
    return fromJson(desc, json);
  } catch (error) {
    throw invalidRequest([{ path: '', message: `cannot be read: ${(error as Error).message}` }]);
  }
}

function readBinary(desc: DescMessage, bytes: Uint8Array): Message {
  try {
    return fromBinary(desc, bytes);
  } catch (error) {
    throw new MalformedItem(`cannot be read: parse binary: ${(error as Error).message}`);
  }
}

/** Splits the binary form of a message with one list, without parsing the items. Unknown fields are skipped. */
function splitBinaryList(body: Uint8Array, list: DescField): NextBytes {
  const reader = new BinaryReader(body);
  const next = () => {
    while (reader.pos < body.length) {
      const [number, wireType] = reader.tag();
      if (number === list.number && wireType === WireType.LengthDelimited) return reader.bytes();
      reader.skip(wireType, number);
    }
    return undefined;
  };
  return () => {
    try {
      return next();
    } catch (error) {
      const message = `cannot be read: parse binary: ${(error as Error).message}`;
      throw invalidRequest([{ path: '', message }]);
    }
  };
}

function itemCounts(list: DescField): { min: number; max: number } {
  const rules = findRules(list);
  if (rules?.type.case !== 'repeated' || rules.type.value.maxItems === 0n) {
    throw new Error(`${list.parent.typeName}.${list.name} has no max_items`);
  }
  return { min: Number(rules.type.value.minItems), max: Number(rules.type.value.maxItems) };
}

function misCounted(list: DescField, message: string): ApiError {
  return invalidRequest([{ path: `/${list.name}`, message }]);
}
