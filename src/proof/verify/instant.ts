/** A time as text: RFC 3339, without milliseconds when it has whole seconds. */
export function instantText(time: Date): string {
  return time.toISOString().replace('.000Z', 'Z');
}

/** What a time in whole seconds since 1970 proves of when it was taken: before the end of that second. */
export function endOfSecond(seconds: number): Date {
  return new Date((seconds + 1) * 1000);
}

/** The time that a witness states, and the one that this proves: no later than `latest`, as exact as the other is. */
export type VouchedTime = { readonly stated: Date; readonly latest: Date };
