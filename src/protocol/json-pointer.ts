const MAX_LENGTH = 512;

/**
 * The JSON pointer (RFC 6901) of a path, for a response: lone surrogates, which UTF-8 cannot encode, are replaced. At
 * most 512 characters long, else it points to the nearest enclosing value: names can be as long as a body, and a
 * response holds a hundred pointers.
 */
export function jsonPointer(path: readonly (string | number)[]): string {
  let text = '';
  for (const step of path) {
    const name = String(step);
    // Before it is escaped: that takes time for a long one.
    if (text.length + name.length >= MAX_LENGTH) break;
    const longer = `${text}/${pointerStep(name)}`;
    if (longer.length > MAX_LENGTH) break;
    text = longer;
  }
  return text.replace(/\p{Surrogate}/gu, '\ufffd');
}

/** A member name as a step of a JSON pointer (RFC 6901, section 3): `~` and `/` escaped. */
export function pointerStep(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

/**
 * A member name as a step of a JSON pointer that any terminal can print: at most 64 characters, `?` for non-ASCII ones.
 */
export function printablePointerStep(name: string): string {
  return pointerStep(name.slice(0, 64).replaceAll(/[^\x20-\x7e]/g, '?'));
}
