/** The text without a byte order mark at its start, which readers of JSON may ignore (RFC 8259, section 8.1). */
export function withoutByteOrderMark(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}
