/** Signing in as a person, at the identity provider. */
import type { KeyObject } from 'node:crypto';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { ClaimCondition } from '../../../config/oidc-settings.js';
import type { Call } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import { assertSameOrigin } from '../../core/http/same-origin.js';
import { readSessionCookie } from '../../core/http/session-cookie.js';
import type { SignedInPerson } from '../../core/principal.js';
import type { RandomSource } from '../../core/random.js';
import type { Sql } from '../../database/connect.js';
import { recordPerson } from '../store/people.js';
import type { NewSession } from '../store/sessions.js';
import { meetsCondition } from '../trust/match-rule.js';
import { claimedPerson } from './claimed-person.js';
import type { IdentityProvider } from './provider.js';
import { newFlow, readFlow, type SignInFlow } from './sign-in-flow.js';

/** The dependencies of signing in as a person. `clock`: Unix milliseconds. */
export type PersonSignInDeps = {
  clock: () => number;
  random: RandomSource;
  /** Undefined without one. */
  provider: IdentityProvider | undefined;
  /** Who is an operator: people who meet one of them. */
  operators: readonly ClaimCondition[];
  key: KeyObject;
  dashboardUrl: () => string;
};

/** Of a person who has signed in: the session to start. */
type PersonStarter = NewSession & { person: SignedInPerson };

/** Begins a sign-in at the provider. @returns where to go on, and the cookie that binds it to the browser */
export async function startAtProvider(
  deps: PersonSignInDeps,
  call: Call,
): Promise<{ cookie: string; url: string }> {
  assertSameOrigin(call, deps.dashboardUrl());
  const { key, random, clock } = deps;
  const { cookie, ...flow } = newFlow(key, random.bytes, clock());
  return { cookie, url: await getProvider(deps).startUrl(flow, redirectUri(deps)) };
}

/** Verifies the answer of the provider. @returns what stores the person, in the transaction that starts the session */
export async function readCallback(
  deps: PersonSignInDeps,
  query: string,
  call: Call,
): Promise<{ findStarter: (tx: Sql) => Promise<PersonStarter> }> {
  const provider = getProvider(deps);
  const flow = getFlow(deps, call);
  const callback = new URL(redirectUri(deps));
  callback.search = query;
  const claims = await provider.claimsOf(flow, callback);
  const { providerSession, ...claimed } = claimedPerson(claims);
  const operator = deps.operators.find(({ claim, pattern }) => meetsCondition(claims, claim, pattern));
  return {
    findStarter: async (tx) => {
      if (operator === undefined) throw noAccess(provider, claimed.email || claimed.name);
      const { subject, name, email } = claimed;
      const id = `per_${deps.random.ulid(deps.clock())}`;
      const person = await recordPerson(tx, { id, issuer: provider.issuer, subject, name, email });
      return { person, personId: person.id, providerSession, operatorRule: ruleText(operator) };
    },
  };
}

/** A condition of OIDC_OPERATORS as sessions keep it. */
export function ruleText({ claim, pattern }: ClaimCondition): string {
  return `${claim}=${pattern}`;
}

function getProvider({ provider }: PersonSignInDeps): IdentityProvider {
  if (provider === undefined)
    throw new ApiError(ErrorCode.AUTH_INVALID_KEY, 'the service has no identity provider (OIDC_ISSUER)');
  return provider;
}

/** The sign-in that this browser began. The library compares its state with that of the query. */
function getFlow({ key, clock, dashboardUrl }: PersonSignInDeps, call: Call): SignInFlow {
  const isSecure = dashboardUrl().startsWith('https:');
  const flow = readFlow(key, readSessionCookie(call.header('cookie'), isSecure, 'sign-in'), clock());
  if (flow !== undefined) return flow;
  const message = 'this browser has not begun to sign in, or ten minutes ago; sign in again';
  throw new ApiError(ErrorCode.AUTH_INVALID_KEY, message);
}

function redirectUri({ dashboardUrl }: PersonSignInDeps): string {
  return `${dashboardUrl()}/dashboard/sign-in/callback`;
}

function noAccess({ name }: IdentityProvider, who: string): ApiError {
  const message = `${name} knows you as ${who}, but nobody has given you access here; ask an administrator of your project for an invitation`;
  return new ApiError(ErrorCode.AUTH_INVALID_KEY, message);
}
