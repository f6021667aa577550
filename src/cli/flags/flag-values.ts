/** Values of flags. */
import { duration } from '../../config/setting-types.js';
import { type Cli, UsageError } from '../cli.js';

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

/**
 * Parses the value of `flag` as a time: RFC 3339, or a duration before now. Throws UsageError.
 */
export function parsePastTime({ now }: Cli, flag: string, text: string): Date {
  const agoMs = findDuration(text);
  const time = agoMs === undefined ? parseTime(text) : new Date(now().getTime() - agoMs);
  if (time === undefined)
    throw new UsageError(
      `${flag} is neither an RFC 3339 time, as 2026-01-31T12:00:00Z, nor a duration before now, as 24h`,
    );
  return time;
}

function findDuration(text: string): number | undefined {
  try {
    return duration('0ms', '36500d').parse(text);
  } catch {
    return undefined;
  }
}

/** Dates without a time of day, or without a zone, would be read in the zone of this machine. */
const TIME = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})$/;

function parseTime(text: string): Date | undefined {
  const time = TIME.test(text) ? new Date(text) : undefined;
  return time === undefined || Number.isNaN(time.getTime()) ? undefined : time;
}
