/** Gathers the items of many submissions into calls. */
import { getOption, toBinary } from '@bufbuild/protobuf';
import { max_bytes as maxBytes } from '../../gen/attestation/options/v1/options_pb.js';
import {
  BatchCreateAttestationsRequestSchema,
  type BatchItem,
  BatchItemSchema,
} from '../../gen/attestation/v1/attestations_pb.js';
import type { Caller } from './call.js';

/** Items of one call, as the proto has it. */
export const MAX_BATCH_ITEMS = 1_000;
const MAX_BATCH_BYTES = getOption(BatchCreateAttestationsRequestSchema.field.items, maxBytes);
/** Tag and length of an item. */
const ITEM_HEAD_BYTES = 8;
/** Items that are there are sent without waiting longer for the next one. */
const LINGER_MS = 500;

/**
 * Gathers items into calls within the bounds of one. An item that takes long to come ends a call, as does one of which `read`
 * throws: after the call.
 */
export async function* chunksOf<T>(
  { delay }: Caller,
  items: Iterable<T> | AsyncIterable<T>,
  read: (item: T, place: number) => BatchItem,
): AsyncGenerator<BatchItem[]> {
  let chunk: BatchItem[] = [];
  let bytes = 0;
  let place = 0;
  for await (const given of lingering(items, delay)) {
    let item: BatchItem | undefined;
    try {
      item = given === WAITING ? undefined : read(given, place++);
    } catch (error) {
      if (chunk.length > 0) yield chunk;
      throw error;
    }
    const more = item === undefined ? 0 : toBinary(BatchItemSchema, item).length + ITEM_HEAD_BYTES;
    const isFull = chunk.length === MAX_BATCH_ITEMS || bytes + more > MAX_BATCH_BYTES;
    if (chunk.length > 0 && (item === undefined || isFull)) {
      yield chunk;
      chunk = [];
      bytes = 0;
    }
    if (item !== undefined) chunk.push(item);
    bytes += more;
  }
  if (chunk.length > 0) yield chunk;
}

const WAITING = Symbol('waiting');

/** Yields the items, and WAITING whenever the next one takes long. */
async function* lingering<T>(
  items: Iterable<T> | AsyncIterable<T>,
  delay: Caller['delay'],
): AsyncGenerator<T | typeof WAITING> {
  if (Symbol.iterator in items) return yield* items;
  const source = items[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = source.next();
      const waiting = new AbortController();
      const late = delay(LINGER_MS, waiting.signal).then(
        () => true as const,
        () => true as const,
      );
      if ((await Promise.race([next, late])) === true) yield WAITING;
      const { done, value } = await next;
      waiting.abort();
      if (done) return;
      yield value;
    }
  } finally {
    await source.return?.();
  }
}
