/** Values of flags. */
import { duration } from '../../config/setting-types.js';
import { UsageError } from '../cli.js';

/** Parses the duration of a flag, in milliseconds. Throws UsageError if it is outside `min` to `max`. */
export function parseDuration(flag: string, text: string, min: string, max: string): number {
  const type = duration(min, max);
  try {
    return type.parse(text);
  } catch {
    throw new UsageError(`${flag} is not ${type.expected}`);
  }
}

/** Parses the value of `flag` as an integer from 1 to `max`. Throws UsageError. */
export function parseCount(flag: string, text: string, max: number): number {
  const count = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > max) throw new UsageError(`${flag} is not a whole number from 1 to ${max}`);
  return count;
}
