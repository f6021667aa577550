/** Replaces what Postgres does not store in a text, U+0000 and lone surrogates, by U+FFFD. */
export function storableText(text: string): string {
  return text.replace(/\0|\p{Surrogate}/gu, '\ufffd');
}
