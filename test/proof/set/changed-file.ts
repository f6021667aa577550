/** A small set file, line by line, and what it is changed into. */
import { NOT_BEFORE, textOf } from './set-sample.js';

/** The set of the files `a`, `b` and `c/d`. */
export const text = textOf(['a', 'b', 'c/d'], NOT_BEFORE);

/** Its lines: the entries are in the second to the fourth, `b` in the third, the head is in the last. */
export const [first = '', a = '', b = '', c = '', last = ''] = text.split('\n');

/** A file of these lines. */
export const of = (...lines: string[]) => lines.join('\n');

/** The file with another line in the place of the third. */
export const withEntry = (line: string) => of(first, a, line, c, last);

/** The file with another path, as JSON, in its third line. */
export const withPath = (path: string) => withEntry(b.replace('"path":"b"', `"path":${path}`));

/** The file with a change made to the head, and members of it left out. */
export function withHead(change: object, left: readonly string[] = []): string {
  const head = { ...JSON.parse(text).head, ...change };
  for (const name of left) delete head[name];
  return of(first, a, b, c, `],"head":${JSON.stringify(head)}}`);
}

/** JSON of this depth. */
export const deep = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
