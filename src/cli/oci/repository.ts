/** A repository of a registry, by the OCI distribution specification 1.1. */
import { printable } from '../../protocol/printable.js';
import { authorize } from './authorize.js';
import type { Credentials } from './docker-config.js';
import type { ImageReference } from './reference.js';
import { type Answer, type HttpRequest, type Network, sendOnce } from './request.js';

/** A request to a path below `/v2/<repository>/`, or to an address that the registry named. */
export type RepositoryRequest = Omit<HttpRequest, 'url'> & { readonly to: string | URL };

/** Sends requests with the authorization that the registry asks for. */
export type Repository = {
  readonly name: string;
  /** Follows redirects of GET and HEAD. Throws unless the answer is a success, or its status is in `expected`. */
  call(request: RepositoryRequest, expected?: readonly number[]): Promise<Answer>;
};

type RepositoryOptions = Network & {
  readonly actions: 'pull' | 'pull,push';
  /** Credentials are looked for once the registry asks for them. */
  readonly findCredentials: (registry: string) => Promise<Credentials | undefined>;
  /** Whether it is called by http. */
  readonly isPlain: boolean;
};

const MAX_REDIRECTS = 5;
const MAX_MESSAGE = 300;
/** docker.io is the name of the registry, not its host. */
const HOSTS: Readonly<Record<string, string>> = { 'docker.io': 'registry-1.docker.io' };

/** Opens the repository of an image. Nothing is sent before the first call. */
export function openRepository(image: ImageReference, options: RepositoryOptions): Repository {
  const { registry, repository } = image;
  const { actions, findCredentials, isPlain } = options;
  const base = new URL(`${isPlain ? 'http' : 'https'}://${HOSTS[registry] ?? registry}/v2/${repository}/`);
  const name = `${registry}/${repository}`;
  const scope = `repository:${repository}:${actions}`;
  let signedIn: { credentials: Credentials | undefined; header: string | undefined } | undefined;

  const send = async ({ to, headers, ...request }: RepositoryRequest): Promise<Answer> => {
    let url = typeof to === 'string' ? new URL(to, base) : to;
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      // Another host is shown no credentials: it gets what it needs in its address.
      const own = url.origin === base.origin ? signedIn?.header : undefined;
      const answer = await sendOnce(options, {
        ...request,
        url,
        headers: { ...headers, ...(own !== undefined && { authorization: own }) },
      });
      if (answer.status < 300 || answer.status > 399) return answer;
      if (request.method !== 'GET' && request.method !== 'HEAD') break;
      url = locationOf(answer, base);
    }
    throw new Error(`${base.host} redirects where it must not, or too often`);
  };

  return {
    name,
    call: async (request, expected = []) => {
      let answer = await send(request);
      // Another host, to which the registry redirects, gets no credentials for asking.
      if (answer.status === 401 && signedIn === undefined && answer.url.origin === base.origin) {
        const credentials = await findCredentials(registry);
        const sending = (request: HttpRequest) => sendOnce(options, request);
        const challenge = answer.headers.get('www-authenticate');
        const header = await authorize(challenge, { registry: base, scope, credentials, send: sending });
        signedIn = { credentials, header };
        if (header !== undefined) answer = await send(request);
      }
      if (isSuccess(answer) || expected.includes(answer.status)) return answer;
      throw failure(answer, { name, registry, credentials: signedIn?.credentials });
    },
  };
}

function isSuccess({ status }: Answer): boolean {
  return status >= 200 && status <= 299;
}

/** The address in `Location`. Throws unless it is https, or http like the registry itself. */
export function locationOf({ headers, url: from }: Answer, base: URL = from): URL {
  const location = headers.get('location');
  const url = location !== null && URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== base.protocol))
    throw new Error(`${from.host} names no address to continue at, or one without https`);
  return url;
}

type Called = { name: string; registry: string; credentials: Credentials | undefined };

function failure(answer: Answer, { name, registry, credentials }: Called): Error {
  const { status, headers } = answer;
  const message = messageOf(answer);
  if (status === 401) {
    return credentials === undefined
      ? new Error(`${registry} asks for credentials: docker login ${registry} keeps them`)
      : new Error(`${registry} does not accept the credentials of ${credentials.source}${message}`);
  }
  if (status === 403) return new Error(`${registry} does not allow this in ${name}${message}`);
  if (status === 404) return new Error(`${registry} has no such thing in ${name}${message}`);
  if (status === 429) {
    const after = headers.get('retry-after');
    const when = after !== null && /^\d{1,6}$/.test(after) ? `, try again in ${after} s` : '';
    return new Error(`${registry} limits the rate of requests${when}${message}`);
  }
  return new Error(`${registry} answers HTTP ${status}${message}`);
}

/** What the registry says of its error, safe to print; empty if it says nothing. */
function messageOf(answer: Answer): string {
  const errors = answer.json()?.errors;
  const [first] = Array.isArray(errors) ? errors : [];
  const text = [first?.code, first?.message].filter((part) => typeof part === 'string').join(', ');
  return text === '' ? '' : `: ${printable(text.slice(0, MAX_MESSAGE))}`;
}
