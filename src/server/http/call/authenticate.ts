import { Access } from '../../../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { Call } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { Lookup } from '../../core/lookup.js';
import { type Principal, UNIVERSAL_SCOPE } from '../../core/principal.js';
import { parseApiKey } from '../../keys/api-key.js';
import { authenticateSession, type Sessions } from './authenticate-session.js';

/** Looks up tokens. */
export type Credentials = {
  /** The principal of a usable API key; undefined for any other token. */
  principals: Lookup<string, Principal | undefined>;
  /** Whether a token is the admin token; may delay the caller of a wrong one. */
  isAdmin: (token: string) => Promise<boolean>;
  /** The sessions of the dashboard; undefined without one. */
  sessions?: Sessions | undefined;
};

const MAX_TOKEN_CHARACTERS = 512;
/** The usual form of the header, read by one expression. */
const USUAL_FORM = /^Bearer ([!-~]{1,512})$/;
const CHALLENGE = { 'www-authenticate': 'Bearer' };
/** The refusals of a kind of token. */
type Refusals = { missing: ApiError; invalid: string };
const API_KEY: Refusals = {
  missing: missingCredentials('an API key'),
  invalid: 'the API key is unknown, malformed, revoked or expired',
};
const ADMIN_TOKEN: Refusals = {
  missing: missingCredentials('the admin token'),
  invalid: 'this is not the admin token',
};

/**
 * The principal of a call with an API key that this process has looked up lately; undefined of any other call, which has to
 * be authenticated.
 */
export function knownPrincipal(deps: Credentials, call: Call): Principal | undefined {
  if (call.rules.access !== Access.UNSPECIFIED) return undefined;
  const token = usualToken(call.header('authorization'));
  return token === undefined ? undefined : deps.principals.peek(token);
}

/** The principal that an `Authorization` header names; undefined for an unknown one. Rejects for one that is no API key. */
export async function findPrincipal(
  { principals }: Credentials,
  authorization: string,
): Promise<Principal | undefined> {
  const token = bearerToken(authorization, API_KEY);
  return principals.peek(token) ?? principals.get(token);
}

/** The refusal of a call without any credentials to a method that needs some; undefined of any other call. */
export function findMissingCredentials({ sessions }: Credentials, call: Call): ApiError | undefined {
  const { access } = call.rules;
  if (access === Access.PUBLIC || call.header('authorization') !== undefined) return undefined;
  if (sessions !== undefined && (access === Access.SESSION || sessions.readCookie(call) !== undefined)) {
    return undefined;
  }
  return access === Access.ADMIN ? ADMIN_TOKEN.missing : API_KEY.missing;
}

/** Authenticates the caller as the method's `access` requires, and sets the call's principal. */
export async function authenticate(deps: Credentials, call: Call): Promise<void> {
  const { rules } = call;
  if (rules.access === Access.PUBLIC) return;
  const authorization = call.header('authorization');
  const cookie = authorization === undefined ? deps.sessions?.readCookie(call) : undefined;
  if (deps.sessions !== undefined && (cookie !== undefined || rules.access === Access.SESSION)) {
    return authenticateSession(deps.sessions, call, cookie);
  }
  if (rules.access === Access.ADMIN) {
    const given = bearerToken(authorization, ADMIN_TOKEN);
    return assertAdmin(await deps.isAdmin(given), given);
  }
  const principal = await deps.principals.get(bearerToken(authorization, API_KEY));
  if (principal === undefined) throw invalidKey(API_KEY);
  call.principal = principal;
}

/** An API key is rejected by its form, so that the error does not reveal whether it exists. */
function assertAdmin(isAdmin: boolean, token: string): void {
  if (isAdmin) return;
  if (parseApiKey(token) === undefined) throw invalidKey(ADMIN_TOKEN);
  throw new ApiError(
    ErrorCode.AUTH_INSUFFICIENT_SCOPE,
    'API keys cannot call the admin API: it wants the admin token',
    { required: 'admin' },
  );
}

/** The refusal of a principal that lacks a scope of the method; it names the first one. */
export function findScopeRefusal({ principal, rules }: Call): ApiError | undefined {
  const { access, scope, moreScopes } = rules;
  if (principal === undefined || access !== Access.UNSPECIFIED) return undefined;
  const isLacking = (one: string) => one !== UNIVERSAL_SCOPE && !principal.scopes.includes(one);
  const required = isLacking(scope) ? scope : moreScopes.find(isLacking);
  if (required === undefined) return undefined;
  return new ApiError(ErrorCode.AUTH_INSUFFICIENT_SCOPE, `the API key lacks the scope ${required}`, {
    required,
  });
}

function usualToken(header: string | undefined): string | undefined {
  return header === undefined ? undefined : USUAL_FORM.exec(header)?.[1];
}

/** The token of an `Authorization` header (RFC 6750, section 2.1); the scheme is matched in any case. */
function bearerToken(header: string | undefined, wanted: Refusals): string {
  const usual = usualToken(header);
  if (usual !== undefined) return usual;
  const [scheme = '', token = '', ...rest] = (header ?? '').trim().split(/ +/, 3);
  if (scheme.toLowerCase() !== 'bearer' || token === '') throw wanted.missing;
  if (rest.length > 0 || token.length > MAX_TOKEN_CHARACTERS) {
    throw invalidKey(wanted);
  }
  return token;
}

function missingCredentials(name: string): ApiError {
  const message = `the request carries no Authorization: Bearer header with ${name}`;
  return new ApiError(ErrorCode.AUTH_MISSING_CREDENTIALS, message, {}, CHALLENGE);
}

function invalidKey({ invalid }: Refusals): ApiError {
  return new ApiError(ErrorCode.AUTH_INVALID_KEY, invalid, {}, CHALLENGE);
}
