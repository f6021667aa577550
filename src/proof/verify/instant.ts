/** A time as a witness states it: RFC 3339, without milliseconds when it has whole seconds, which is then its grain. */
export function instantText(time: Date): string {
  return time.toISOString().replace('.000Z', 'Z');
}
