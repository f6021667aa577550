/** How a registry is shown credentials: the challenges Basic and Bearer of its answers with 401 (RFC 7235). */
import type { Credentials } from './docker-config.js';
import type { Answer, HttpRequest } from './request.js';

const MAX_CHALLENGE = 4096;
const MAX_TOKEN_BYTES = 1024 * 1024;
const TOKEN = /^[\x21-\x7e]+$/;

type Challenge = { readonly scheme: 'basic' } | { readonly scheme: 'bearer'; params: Map<string, string> };

/** `scope` is what is asked for, as `repository:app:pull,push`. `send` follows no redirects. */
type AuthorizeOptions = {
  readonly registry: URL;
  readonly scope: string;
  readonly credentials: Credentials | undefined;
  readonly send: (request: HttpRequest) => Promise<Answer>;
};

/**
 * Makes the header `Authorization` that answers a challenge; undefined if there are no credentials for Basic. A bearer token
 * is fetched from the realm that the registry names, with the credentials if there are any. Throws if the challenge cannot
 * be answered.
 */
export async function authorize(
  header: string | null,
  options: AuthorizeOptions,
): Promise<string | undefined> {
  const { registry, credentials } = options;
  const challenge = parseChallenge(header);
  if (challenge?.scheme === 'bearer') return `Bearer ${await fetchToken(challenge.params, options)}`;
  if (challenge === undefined) throw new Error(`${registry.host} asks for credentials in no known way`);
  if (credentials === undefined) return undefined;
  if ('identityToken' in credentials)
    throw new Error(`${registry.host} takes no identity token, which ${credentials.source} has`);
  return basic(credentials);
}

/** Parses the header `WWW-Authenticate`. A bearer token is preferred. Returns undefined for other schemes. */
function parseChallenge(header: string | null): Challenge | undefined {
  const text = (header ?? '').slice(0, MAX_CHALLENGE);
  const [, rest] = /(?:^|,)\s*bearer\s+(.*)/i.exec(text) ?? [];
  if (rest !== undefined) {
    const params = [...rest.matchAll(/([a-z]+)\s*=\s*"([^"]*)"/gi)];
    // The first of each counts: what follows may be of another challenge.
    return {
      scheme: 'bearer',
      params: new Map(params.reverse().map(([, name = '', value = '']) => [name.toLowerCase(), value])),
    };
  }
  return /(?:^|,)\s*basic\b/i.test(text) ? { scheme: 'basic' } : undefined;
}

async function fetchToken(
  params: Map<string, string>,
  { registry, scope, credentials, send }: AuthorizeOptions,
): Promise<string> {
  const realm = params.get('realm') ?? '';
  const url = URL.canParse(realm) ? new URL(realm) : undefined;
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== registry.protocol))
    throw new Error(`${registry.host} names no https address for its tokens`);
  const answer = await send({
    ...tokenRequest(url, { service: params.get('service'), scope, credentials }),
    maxBytes: MAX_TOKEN_BYTES,
  });
  if (answer.status === 401 || answer.status === 403) {
    const rejected =
      credentials === undefined
        ? 'gives no token without credentials'
        : `rejects the credentials of ${credentials.source}`;
    throw new Error(`${url.host} ${rejected}: docker login ${registry.host} renews them`);
  }
  if (answer.status !== 200) throw new Error(`${url.host} gives no token: HTTP ${answer.status}`);
  const { token, access_token: accessToken } = answer.json() ?? {};
  const found = typeof token === 'string' ? token : accessToken;
  if (typeof found !== 'string' || !TOKEN.test(found))
    throw new Error(`${url.host} gives no token: its answer has none`);
  return found;
}

type TokenOptions = { service: string | undefined; scope: string; credentials: Credentials | undefined };

/** A GET with the password, or a POST with the refresh token (the token specification of the distribution project). */
function tokenRequest(realm: URL, { service, scope, credentials }: TokenOptions): HttpRequest {
  const fields = { ...(service !== undefined && { service }), scope };
  if (credentials !== undefined && 'identityToken' in credentials) {
    const grant = { grant_type: 'refresh_token', refresh_token: credentials.identityToken };
    const body = new URLSearchParams({ ...fields, client_id: 'attest', ...grant });
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    return { method: 'POST', url: realm, headers, body: Buffer.from(body.toString()) };
  }
  const url = new URL(realm);
  for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value);
  return { method: 'GET', url, ...(credentials && { headers: { authorization: basic(credentials) } }) };
}

function basic({ username, password }: { username: string; password: string }): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}
