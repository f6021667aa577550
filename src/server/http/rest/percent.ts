/** Decodes percent-encoded UTF-8; undefined when it is malformed. A plus sign is a plus sign. */
export function decodePercent(text: string): string | undefined {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** The same, save that an encoded slash stays as it is written: `%2F` is part of a segment, `/` parts segments. */
export function decodeExceptSlash(text: string): string | undefined {
  if (!text.includes('%')) return text;
  // The group keeps the slashes as they are written. No UTF-8 sequence is torn: 2F is never a part of one.
  const parts = text.split(/(%2f)/i).map((part) => (/^%2f$/i.test(part) ? part : decodePercent(part)));
  return parts.includes(undefined) ? undefined : parts.join('');
}
