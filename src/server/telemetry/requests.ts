import { activeSpan, inSpan } from './spans.js';

/** Runs an outgoing request in a span below the active one. Of its URL only the host is recorded. */
export function inRequest<T>(
  { method, url }: { method: string; url: string },
  work: () => Promise<T>,
): Promise<T> {
  if (activeSpan() === undefined) return work();
  const host = URL.canParse(url) ? { 'server.address': new URL(url).host } : {};
  return inSpan(method, { kind: 'client', attributes: { 'http.request.method': method, ...host } }, work);
}
