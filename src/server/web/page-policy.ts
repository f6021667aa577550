import type { FastifyReply } from 'fastify';

/** Scripts, styles and requests of this origin only, no inline script, no HTML out of strings. */
export const POLICY: readonly string[] = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
];
/** And no frame around it, which a document cannot ask for itself. */
const SERVED_POLICY = [...POLICY, "frame-ancestors 'none'"].join('; ');

/** Sets the headers that confine a page of `src/web/`, on its document and its files alike. */
export function confinePage(reply: FastifyReply): FastifyReply {
  return reply
    .header('content-security-policy', SERVED_POLICY)
    .header('cross-origin-opener-policy', 'same-origin')
    .header('cross-origin-resource-policy', 'same-origin')
    .header('x-frame-options', 'DENY')
    .header('referrer-policy', 'no-referrer');
}
