/** Malformed bytes or text. The message names the format and the problem; it never quotes the input. */
export class FormatError extends Error {
  override readonly name = 'FormatError';
}
