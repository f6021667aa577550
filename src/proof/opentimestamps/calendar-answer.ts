/** Answers of calendar servers: a timestamp without header. */
import { FormatError } from '../bytes/format-error.js';
import { readBytes } from './byte-reader.js';
import type { Timestamp } from './timestamp.js';
import { readTimestamp } from './timestamp-codec.js';

/** The largest answer of a calendar, as other clients limit it. */
export const MAX_ANSWER_BYTES = 10_000;
const MAX_ANSWER_ITEMS = 512;

/** Parses a calendar's answer about `message`. Throws FormatError if it is malformed, longer than 10,000 bytes, or of more than 512 items. */
export function parseCalendarAnswer(message: Uint8Array, answer: Uint8Array): Timestamp {
  if (answer.length > MAX_ANSWER_BYTES) throw new FormatError('an answer longer than 10,000 bytes');
  return readBytes(answer, (reader) => readTimestamp(reader, message, MAX_ANSWER_ITEMS));
}
