/** Paths of entries: relative, segments joined by `/`, in the order of their UTF-8 bytes. */
import { printable } from '../../protocol/printable.js';
import { utf8 } from '../bytes/encoding.js';

/** Maximum length of a path, in bytes of UTF-8. */
export const MAX_PATH_BYTES = 4096;

const ASCII = /^[\0-\x7f]*$/;
const SURROGATE = /\p{Surrogate}/u;

/** An empty segment (a `/` at the start or the end has one beside it), `.` or `..`. */
const BAD_SEGMENT = /(?:^|\/)(?:\.{0,2})(?:\/|$)/;

const MAX_SHOWN = 256;

/** Returns the problem of a path, as `is empty`; undefined of a good one. */
export function findPathProblem(path: string): string | undefined {
  if (path === '') return 'is empty';
  if (path.length > MAX_PATH_BYTES) return `is longer than ${MAX_PATH_BYTES} bytes`;
  if (!ASCII.test(path)) {
    if (SURROGATE.test(path)) return 'has half a surrogate pair, which UTF-8 cannot encode';
    if (utf8(path).length > MAX_PATH_BYTES) return `is longer than ${MAX_PATH_BYTES} bytes`;
  }
  if (path.includes('\0')) return 'has a NUL';
  if (path.includes('\\')) return 'has a backslash';
  if (path.startsWith('/')) return 'is absolute';
  if (path.endsWith('/')) return 'ends with a slash';
  return BAD_SEGMENT.test(path) ? 'has a segment that is empty, . or ..' : undefined;
}

/**
 * Compares well-formed paths by their UTF-8 bytes, as `sort` wants it. UTF-16 has the characters beyond U+FFFF, which are
 * surrogate pairs there, before those from U+E000 to U+FFFF.
 */
export function comparePaths(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    const isPair = isSurrogate(x);
    if (isPair === isSurrogate(y)) return x - y;
    return isPair ? 1 : -1;
  }
  return a.length - b.length;
}

/** A path that any terminal can print, cut at 256 characters. */
export function printablePath(path: string): string {
  const shown = path.length > MAX_SHOWN ? `${path.slice(0, MAX_SHOWN)}…` : path;
  return printable(shown).replace(/\p{Surrogate}/gu, '\ufffd');
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}
