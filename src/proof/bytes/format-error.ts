/** Bytes or text that are not what their format says. The message names the format and what is wrong, never quotes the input. */
export class FormatError extends Error {
  override readonly name = 'FormatError';
}
