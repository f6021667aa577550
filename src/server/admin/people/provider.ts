/** The identity provider: OpenID Connect by `openid-client`, with PKCE, nonce and verified signatures. */
import type { JsonObject } from '@bufbuild/protobuf';
import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  ResponseBodyError,
} from 'openid-client';
import { Agent, fetch } from 'undici';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { OidcConfig } from '../../../config/oidc-settings.js';
import { ApiError, unavailable } from '../../core/errors.js';
import type { Logger } from '../../core/logger.js';
import type { SignInFlow } from './sign-in-flow.js';

/** The identity provider. Its calls reject with `service.unavailable` while it cannot be reached. */
export type IdentityProvider = {
  name: string;
  issuer: string;
  /** Where a browser signs in, to come back to `redirectUri`. */
  startUrl(flow: SignInFlow, redirectUri: string): Promise<string>;
  /** The verified claims about whom the provider sent back to `callback`. Throws `auth.invalid_key`. */
  claimsOf(flow: SignInFlow, callback: URL): Promise<JsonObject>;
  /** Where a browser signs out of it, to come back to `returnTo`; undefined if it has no such address. */
  signOutUrl(returnTo: string): Promise<string | undefined>;
};

type ProviderDeps = {
  oidc: OidcConfig;
  log: Pick<Logger, 'warn'>;
  /** Monotonic milliseconds. */
  monotonicMs: () => number;
};

const TIMEOUT_SECONDS = 5;
const MAX_BYTES = 256 * 1024;
const TTL_MS = 10 * 60_000;
const AFTER_FAILURE_MS = 5_000;

/** Opens the provider of the settings. Its discovery document is read at the first sign-in, and every ten minutes. */
export function openProvider(deps: ProviderDeps): IdentityProvider {
  const { oidc } = deps;
  const configuration = rememberConfiguration(deps);
  const reach = async <T>(work: (found: Configuration) => Promise<T>): Promise<T> => {
    try {
      return await work(await configuration());
    } catch (error) {
      throw explain(deps, error);
    }
  };
  return {
    name: oidc.name,
    issuer: oidc.issuer,
    startUrl: (flow, redirectUri) =>
      reach(async (found) => {
        const { state, nonce, verifier } = flow;
        return buildAuthorizationUrl(found, {
          redirect_uri: redirectUri,
          scope: oidc.scopes,
          state,
          nonce,
          code_challenge: await calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
        }).href;
      }),
    claimsOf: (flow, callback) => reach((found) => readClaims(found, flow, callback)),
    signOutUrl: (returnTo) =>
      reach(async (found) =>
        found.serverMetadata().end_session_endpoint === undefined
          ? undefined
          : buildEndSessionUrl(found, { post_logout_redirect_uri: returnTo }).href,
      ),
  };
}

/** Exchanges the code and verifies the ID token. What only the user info has is added to its claims. */
async function readClaims(
  found: Configuration,
  { state, nonce, verifier }: SignInFlow,
  callback: URL,
): Promise<JsonObject> {
  const tokens = await authorizationCodeGrant(found, callback, {
    expectedState: state,
    expectedNonce: nonce,
    pkceCodeVerifier: verifier,
    idTokenExpected: true,
  });
  const claims = tokens.claims();
  if (claims === undefined) throw new Error('the provider sent no ID token');
  if (found.serverMetadata().userinfo_endpoint === undefined) return claims as JsonObject;
  const info = await fetchUserInfo(found, tokens.access_token, claims.sub);
  return { ...info, ...claims } as JsonObject;
}

/** Concurrent callers share one read; after a failure nobody reads for five seconds. */
function rememberConfiguration(deps: ProviderDeps): () => Promise<Configuration> {
  const { monotonicMs } = deps;
  let known: { found: Promise<Configuration>; untilMs: number } | undefined;
  return () => {
    if (known !== undefined && monotonicMs() < known.untilMs) return known.found;
    const reading = { found: discover(deps), untilMs: monotonicMs() + TTL_MS };
    known = reading;
    reading.found.catch(() => {
      reading.untilMs = monotonicMs() + AFTER_FAILURE_MS;
    });
    return reading.found;
  };
}

async function discover({ oidc }: ProviderDeps): Promise<Configuration> {
  const { issuer, clientId, clientSecret } = oidc;
  const isPlain = issuer.startsWith('http:');
  return discovery(new URL(issuer), clientId, clientSecret, clientAuth(clientSecret), {
    timeout: TIMEOUT_SECONDS,
    execute: [enableNonRepudiationChecks, ...(isPlain ? [allowInsecureRequests] : [])],
    [customFetch]: createFetch(),
  });
}

/** By the method that a provider has unless it says otherwise (OpenID Connect Discovery 1.0, section 3), or by the other. */
function clientAuth(clientSecret: string): ClientAuth {
  const basic = ClientSecretBasic(clientSecret);
  const post = ClientSecretPost(clientSecret);
  return (server, ...rest) => {
    const { token_endpoint_auth_methods_supported: methods = ['client_secret_basic'] } = server;
    return (methods.includes('client_secret_basic') ? basic : post)(server, ...rest);
  };
}

function createFetch() {
  const timeout = TIMEOUT_SECONDS * 1000;
  const dispatcher = new Agent({
    maxResponseSize: MAX_BYTES,
    headersTimeout: timeout,
    bodyTimeout: timeout,
    connectTimeout: timeout,
    keepAliveTimeout: 1_000,
  });
  return async (url: string, options: object) =>
    (await fetch(url, { ...options, dispatcher })) as unknown as Response;
}

/** The error for the browser. What is wrong with an answer of the provider is for the log only. */
function explain({ oidc, log }: ProviderDeps, error: unknown): ApiError {
  const { name, issuer } = oidc;
  if (error instanceof AuthorizationResponseError) {
    const reason = /^[a-z_]{1,64}$/.test(error.error) ? error.error : 'an error';
    return refusal(`${name} did not sign you in (${reason}); try again, or ask whoever runs it`);
  }
  log.warn({ reason: reasonOf(error), issuer }, 'a sign-in at the identity provider failed');
  if (error instanceof ResponseBodyError && error.error === 'invalid_grant')
    return refusal('this sign-in was used already or took too long; sign in again');
  if (isAway(error)) return unavailable(`${name} cannot be reached; try again in a moment`, 5, error);
  return refusal(`what ${name} answered cannot be verified; sign in again, or see the log of the service`);
}

/** The messages of an error and its causes, without the stacks and answers that they carry. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const said = error instanceof ResponseBodyError ? `the provider answered ${error.error}` : error.message;
  return [said, reasonOf(error.cause)].filter((text) => text !== '').join(': ');
}

function refusal(message: string): ApiError {
  return new ApiError(ErrorCode.AUTH_INVALID_KEY, message);
}

/** Whether the provider did not answer, or with a failure of its own. */
function isAway(error: unknown): boolean {
  const { code, cause } = error as { code?: string; cause?: unknown };
  if (error instanceof TypeError) return true;
  const away = [
    'OAUTH_TIMEOUT',
    'OAUTH_ABORT',
    'OAUTH_RESPONSE_IS_NOT_CONFORM',
    'OAUTH_RESPONSE_IS_NOT_JSON',
  ];
  return away.includes(code ?? '') || cause instanceof TypeError;
}
