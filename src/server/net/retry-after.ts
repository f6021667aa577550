/**
 * The milliseconds that a `Retry-After` header asks to wait, in seconds or as a date (RFC 9110, section 10.2.3);
 * undefined if there is none or it is malformed.
 */
export function readRetryAfter(header: string | string[] | undefined, nowMs: number): number | undefined {
  if (typeof header !== 'string') return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
