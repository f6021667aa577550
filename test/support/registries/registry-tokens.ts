/** Tokens for Debian's registry: the smallest honest server of the distribution project's token specification. */
import { randomUUID, sign, X509Certificate } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import type { Test } from 'tap';
import { makeServerTls } from '../certificates/server-tls.js';
import { serve } from '../witnesses/openssl-tsa.js';

const ISSUER = 'tests';
const SERVICE = 'registry.tests';
/** A refresh token that it takes in place of the password. */
export const REFRESH_TOKEN = 'refresh-me';

/** Serves tokens to a user until the test ends. Returns the registry's settings. */
export async function serveTokens(
  t: Pick<Test, 'teardown'>,
  { user, password }: { user: string; password: string },
): Promise<object> {
  const { tls, caFile } = await makeServerTls(t);
  const basic = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  const certificate = new X509Certificate(tls.cert).raw.toString('base64');
  const { url, close } = await serve(async (request, response) => {
    const form = request.method === 'POST' ? new URLSearchParams(String(await buffer(request))) : undefined;
    const query = form ?? new URL(request.url ?? '', 'http://tokens').searchParams;
    const isKnown =
      form === undefined
        ? request.headers.authorization === basic
        : form.get('grant_type') === 'refresh_token' && form.get('refresh_token') === REFRESH_TOKEN;
    if (!isKnown || query.get('service') !== SERVICE) {
      response.writeHead(401).end('{"details":"unauthorized"}');
      return;
    }
    const [, name = '', actions = ''] = (query.get('scope') ?? '').split(':');
    const access = [{ type: 'repository', name, actions: actions.split(',') }];
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      iss: ISSUER,
      sub: user,
      aud: SERVICE,
      nbf: now - 60,
      iat: now,
      exp: now + 300,
      jti: randomUUID(),
      access,
    };
    const parts = [{ typ: 'JWT', alg: 'ES256', x5c: [certificate] }, claims];
    const text = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
    const signature = sign('sha256', Buffer.from(text), { key: tls.key, dsaEncoding: 'ieee-p1363' });
    response.end(JSON.stringify({ token: `${text}.${signature.toString('base64url')}` }));
  });
  t.teardown(close);
  return { realm: `${url}token`, service: SERVICE, issuer: ISSUER, rootcertbundle: caFile };
}
