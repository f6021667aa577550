import type { Interceptor, Transport } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';

/** The environment and project that calls are for; a session of one project needs no project. */
export type Scope = { environment: 'live' | 'test'; projectId: string };

/** Creates the transport of one scope: Connect with JSON to the page's own origin, where the browser adds the cookie. */
export function createScopedTransport({ environment, projectId }: Scope): Transport {
  const withScope: Interceptor = (next) => (request) => {
    request.header.set('attest-environment', environment);
    if (projectId !== '') request.header.set('attest-project', projectId);
    return next(request);
  };
  return createConnectTransport({ baseUrl: '/', interceptors: [withScope] });
}
