/** RFC 3339 text of a time, without milliseconds if they are zero. */
export function instantText(time: Date): string {
  return time.toISOString().replace('.000Z', 'Z');
}

/** End of a second since 1970: the latest time that a clock of whole seconds can have meant. */
export function endOfSecond(seconds: number): Date {
  return new Date((seconds + 1) * 1000);
}
