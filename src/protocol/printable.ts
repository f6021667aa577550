/**
 * Makes untrusted text safe to show: replaces control and bidirectional formatting characters, which could spoof other
 * output, with U+FFFD.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu, '\uFFFD');
}
