/** Reads members of JSON that anybody may have written. */
import { ArchiveError } from './archive-error.js';

export const HEX = /^(?:[0-9a-f]{2})+$/;
export const HASH = /^[0-9a-f]{64}$/;
export const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z$/;

/** Members of an object. Each method throws {@link ArchiveError}, naming the member, unless it is what the method returns. */
export type Members = {
  /** A text; of this form if one is given. */
  text(name: string, form?: RegExp): string;
  /** The same, or null if it is missing or null. */
  optional(name: string, form?: RegExp): string | null;
  /** An integer from 0 to 2^53 - 1. */
  integer(name: string): number;
  /** The elements of an array; none if it is missing. */
  list(name: string): readonly unknown[];
  /** Members of an object; undefined if it is missing. */
  object(name: string): Members | undefined;
  /** The member as it is. */
  value(name: string): unknown;
};

/** Opens a value as an object. `what` names it in errors. */
export function openMembers(value: unknown, what: string): Members {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ArchiveError(`${what} is not an object`);
  const members = value as Readonly<Record<string, unknown>>;
  const fail = (name: string): never => {
    throw new ArchiveError(`${what} has no valid ${name}`);
  };
  const optional = (name: string, form?: RegExp): string | null => {
    const found = members[name] ?? null;
    if (found === null) return null;
    if (typeof found !== 'string' || form?.test(found) === false || found.includes('\0')) return fail(name);
    return found;
  };
  return {
    text: (name, form) => optional(name, form) ?? fail(name),
    optional,
    integer: (name) => {
      const found = members[name];
      return Number.isSafeInteger(found) && (found as number) >= 0 ? (found as number) : fail(name);
    },
    list: (name) => {
      const found = members[name] ?? [];
      return Array.isArray(found) ? found : fail(name);
    },
    object: (name) => {
      const found = members[name];
      return found === undefined ? undefined : openMembers(found, `${what} ${name}`);
    },
    value: (name) => members[name],
  };
}

/** Parses JSON. Throws {@link ArchiveError}. */
export function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ArchiveError(`${what} is not JSON, or is cut off`);
  }
}
