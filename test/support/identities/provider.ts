/** A certified OpenID provider, `oidc-provider`, that issues JWTs to a client for the audience it names. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import Provider, { type Configuration } from 'oidc-provider';
import type { Test } from 'tap';

export type OpenIdProvider = {
  url: string;
  /** A token that it issues now. */
  token: (audience: string) => Promise<string>;
  /** Signs with a new key; it publishes the former ones only if they are `kept`. */
  rotate: (options: { isKept: boolean }) => Promise<void>;
};

const CLIENT = { id: 'a-workload', secret: 'a secret of the test' };

/** Starts one until the test ends. */
export async function startOpenIdProvider(t: Pick<Test, 'teardown'>): Promise<OpenIdProvider> {
  let serve: (...args: Parameters<ReturnType<Provider['callback']>>) => unknown = () => {};
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let keys: JWK[] = [];
  const rotate = async ({ isKept }: { isKept: boolean }) => {
    keys = [await newKey(), ...(isKept ? keys : [])];
    serve = new Provider(url, configurationOf(keys)).callback();
  };
  await rotate({ isKept: false });
  return {
    url,
    rotate,
    token: async (audience) => {
      const answer = await fetch(`${url}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(`${CLIENT.id}:${encodeURIComponent(CLIENT.secret)}`)}` },
        body: new URLSearchParams({ grant_type: 'client_credentials', resource: audience }),
      });
      const { access_token: token } = (await answer.json()) as { access_token?: string };
      if (token === undefined) throw new Error(`the provider answered ${answer.status}`);
      return token;
    },
  };
}

async function newKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  return { ...(await exportJWK(privateKey)), use: 'sig', alg: 'RS256' };
}

function configurationOf(keys: readonly JWK[]): Configuration {
  return {
    jwks: { keys: keys.map((key) => ({ ...key, kty: key.kty ?? '' })) },
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, resource) => ({
          scope: '',
          audience: resource,
          accessTokenFormat: 'jwt',
          accessTokenTTL: 300,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    ttl: { ClientCredentials: 300 },
    extraTokenClaims: () => ({ repository: 'acme/app', attempt: 2 }),
  };
}
