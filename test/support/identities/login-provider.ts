/** A certified OpenID provider, `oidc-provider`, at which people sign in to the dashboard of an app; and how a browser does. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import Provider, { type ClientMetadata, type Configuration } from 'oidc-provider';
import type { Test } from 'tap';
import { SessionService } from '../../../gen/attestation/admin/v1/sessions_pb.js';
import type { App } from '../app.js';
import { type Browser, newBrowser, type SessionOutcome } from '../calling/sessions.js';

const CLIENT = { id: 'the-dashboard', secret: 'a secret of the dashboard: % +' };

export type LoginProvider = {
  url: string;
  /** The settings of an app with it. */
  env: Record<string, string>;
  /** The claims of its accounts, by what they type in as their name. */
  accounts: Map<string, Record<string, unknown>>;
  /** Registers the dashboard of an app. */
  register: (app: App, more?: Partial<ClientMetadata>) => void;
  /** Replaces its answers, as by a failure, if it returns true. */
  intercept: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  /** Signs as it does. */
  key: () => JWK;
};

/** Starts one until the test ends. */
export async function startLoginProvider(t: Pick<Test, 'teardown'>): Promise<LoginProvider> {
  let serve: (...args: Parameters<ReturnType<Provider['callback']>>) => unknown = () => {};
  const server = createServer((request, response) => {
    if (!provider.intercept?.(request, response)) serve(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const key = await newKey();
  const accounts: LoginProvider['accounts'] = new Map();
  const provider: LoginProvider = {
    url,
    env: {
      OIDC_ISSUER: url,
      OIDC_CLIENT_ID: CLIENT.id,
      OIDC_CLIENT_SECRET: CLIENT.secret,
      OIDC_NAME: 'Acme',
      OIDC_SCOPES: 'openid email profile groups',
    },
    accounts,
    intercept: undefined,
    key: () => key,
    register: ({ baseUrl }, more = {}) => {
      serve = new Provider(url, configurationOf({ key, accounts, baseUrl, more })).callback();
    },
  };
  return provider;
}

async function newKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  return { ...(await exportJWK(privateKey)), kid: 'of-the-provider', use: 'sig', alg: 'RS256' };
}

type Parts = {
  key: JWK;
  accounts: LoginProvider['accounts'];
  baseUrl: string;
  more: Partial<ClientMetadata>;
};

function configurationOf({ key, accounts, baseUrl, more }: Parts): Configuration {
  return {
    jwks: { keys: [{ ...key, kty: key.kty ?? '' }] },
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: [`${baseUrl}/dashboard/sign-in/callback`],
        post_logout_redirect_uris: [`${baseUrl}/dashboard/sign-in`],
        backchannel_logout_uri: `${baseUrl}/dashboard/sign-in/back-channel-logout`,
        backchannel_logout_session_required: true,
        ...more,
      },
    ],
    claims: {
      openid: ['sub'],
      email: ['email', 'email_verified'],
      profile: ['name'],
      groups: ['groups', 'department'],
    },
    pkce: { required: () => true },
    features: { devInteractions: { enabled: true }, backchannelLogout: { enabled: true } },
    cookies: { keys: ['a key of the test'] },
    // Its own calls nothing on this machine.
    fetch: (to, { method = 'GET', headers, body } = {}) =>
      fetch(to, { method, ...(headers && { headers }), ...(body && { body }) }),
    ttl: { AccessToken: 60, AuthorizationCode: 60, IdToken: 60, Interaction: 600, Session: 600, Grant: 600 },
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, ...accounts.get(id) }),
    }),
  };
}

/** The outcome of beginning to sign in, and the browser that has. */
type Started = { browser: Browser; url: string };

/** Begins to sign in to an app. */
export async function startSigningIn(app: App, invitation = ''): Promise<Started> {
  const browser = newBrowser(app);
  const started = await browser.call(SessionService.method.startSignIn, { invitation });
  if (started.code !== 'ok') throw new Error(`it cannot begin: ${started.code} ${started.message}`);
  [browser.cookie = ''] = String(started.headers['set-cookie']).split(';');
  return { browser, url: String(started.response.url) };
}

/** What a person does at the provider, in a browser of its own: types in a name, consents. @returns where that ends */
export async function passProvider(
  url: string,
  account: string,
  origin: string,
  cookies = new Map<string, string>(),
): Promise<URL> {
  let next = new URL(url);
  let form: URLSearchParams | undefined;
  for (let step = 0; step < 20; step++) {
    if (next.origin === origin) return next;
    const answer = await visit(next, cookies, form);
    const location = answer.headers.get('location');
    const page = await answer.text();
    form = undefined;
    if (location !== null) {
      next = new URL(location, next);
      continue;
    }
    const [, prompt] = /name="prompt" value="(\w+)"/.exec(page) ?? [];
    const [, action = ''] = /action="([^"]+)"/.exec(page) ?? [];
    if (prompt === undefined)
      throw new Error(`the provider answered ${answer.status}: ${page.slice(0, 500)}`);
    next = new URL(action, next);
    form = new URLSearchParams({ prompt, login: account, password: 'any' });
  }
  throw new Error('the provider asks without end');
}

/** One request of a browser with these cookies. */
async function visit(
  url: URL | string,
  cookies: Map<string, string>,
  form?: URLSearchParams,
): Promise<Response> {
  const answer = await fetch(url, {
    method: form === undefined ? 'GET' : 'POST',
    redirect: 'manual',
    headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
    ...(form !== undefined && { body: form }),
  });
  for (const line of answer.headers.getSetCookie()) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    cookies.set(name, value);
  }
  return answer;
}

/** Signs out at the provider, in a browser that is signed in there. */
export async function signOutAtProvider(url: string, cookies: Map<string, string>): Promise<void> {
  const page = await (await visit(url, cookies)).text();
  const [, action = ''] = /action="([^"]+)"/.exec(page) ?? [];
  const [, xsrf = ''] = /name="xsrf" value="([^"]+)"/.exec(page) ?? [];
  const { status } = await visit(action, cookies, new URLSearchParams({ xsrf, logout: 'yes' }));
  if (status !== 303) throw new Error(`the provider answered ${status}`);
}

/** Signs in as an account of the provider, all the way, with the secret of an invitation if there is one. */
export async function signInAs(
  app: App,
  account: string,
  invitation?: string,
): Promise<{ browser: Browser; outcome: SessionOutcome; callback: URL }> {
  const { browser, url } = await startSigningIn(app, invitation);
  const callback = await passProvider(url, account, app.baseUrl);
  return { browser, callback, outcome: await finishSigningIn(browser, callback) };
}

/** Gives the service what the provider sent the browser back with. */
export function finishSigningIn(browser: Browser, callback: URL): Promise<SessionOutcome> {
  return browser.signIn({ credential: { case: 'callback', value: callback.search } });
}
