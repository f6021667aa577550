const MAX_LENGTH = 512;

/**
 * The JSON pointer (RFC 6901) of a path, to be shown: lone surrogates, which an answer cannot hold, are replaced. Longer
 * than 512 characters it leads to the nearest place around that one, as names can be as long as a body, and an answer
 * points at a hundred places.
 */
export function jsonPointer(path: readonly (string | number)[]): string {
  let text = '';
  for (const step of path) {
    const name = String(step);
    // Before it is escaped: that takes time for a long one.
    if (text.length + name.length >= MAX_LENGTH) break;
    const longer = `${text}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    if (longer.length > MAX_LENGTH) break;
    text = longer;
  }
  return text.replace(/\p{Surrogate}/gu, '\ufffd');
}
