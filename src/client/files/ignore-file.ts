/** The file in a folder that names what is left out, by the rules of .gitignore. */
import ignore from 'ignore';

/** Its name. */
export const IGNORE_FILE = '.attestignore';

/** Its maximum length, in bytes. */
export const MAX_IGNORE_BYTES = 1024 * 1024;

/** Creates the test whether a path matches one of these patterns; of a folder the path ends with a slash. */
export function matchPatterns(patterns: readonly string[]): (path: string) => boolean {
  const rules = ignore({ ignorecase: false }).add(patterns);
  return (path) => rules.ignores(path);
}

/**
 * Creates the test whether a path is left out by the text of the folder's file, which cannot leave out itself, so that a set
 * shows it. Of a folder the path ends with a slash.
 */
export function matchIgnoreFile(text: string): (path: string) => boolean {
  const isIgnored = matchPatterns(text.split(/\r?\n/));
  return (path) => path !== IGNORE_FILE && isIgnored(path);
}
