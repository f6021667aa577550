import { Access, type MethodRules } from '../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode } from '../../gen/attestation/v1/errors_pb.js';
import type { Call } from '../call.js';
import { ApiError } from '../errors.js';
import type { Principal } from '../principal.js';

/** Who can tell what a token is. */
export type Credentials = {
  /** The principal of a usable API key; undefined for any other token. */
  findPrincipal: (token: string) => Promise<Principal | undefined>;
  /** Whether a token is the operator's; takes the same time for every token. */
  isAdmin: (token: string) => boolean;
};

const MAX_TOKEN_CHARACTERS = 512;
/** How nearly every client sends it, read without taking it apart. */
const USUAL_FORM = /^Bearer ([!-~]{1,512})$/;
const CHALLENGE = { 'www-authenticate': 'Bearer' };
/** A scope that every key has. */
const UNIVERSAL_SCOPE = 'service:read';

/** Finds out who calls, as the method's `access` wants it, and sets the call's principal. */
export async function authenticate(deps: Credentials, call: Call, rules: MethodRules): Promise<void> {
  if (rules.access === Access.PUBLIC) return;
  const token = bearerToken(call.header('authorization'));
  if (rules.access === Access.ADMIN) {
    if (!deps.isAdmin(token)) throw invalidKey('this call wants the admin token');
    return;
  }
  call.principal = await deps.findPrincipal(token);
  if (call.principal === undefined) throw invalidKey('the API key is unknown, malformed, revoked or expired');
}

/** Refuses a principal that lacks the method's scope. */
export function checkScope(call: Call, { scope }: MethodRules): void {
  const { principal } = call;
  if (principal === undefined || scope === UNIVERSAL_SCOPE || principal.scopes.includes(scope)) return;
  throw new ApiError(ErrorCode.AUTH_INSUFFICIENT_SCOPE, `the API key lacks the scope ${scope}`, {
    required: scope,
  });
}

/** The token of an `Authorization` header (RFC 6750, section 2.1); the scheme is matched in any case. */
function bearerToken(header: string | undefined): string {
  const usual = header === undefined ? null : USUAL_FORM.exec(header);
  if (usual !== null) return usual[1] as string;
  const [scheme = '', token = '', ...rest] = (header ?? '').trim().split(/ +/, 3);
  if (scheme.toLowerCase() !== 'bearer' || token === '') {
    throw new ApiError(
      ErrorCode.AUTH_MISSING_CREDENTIALS,
      'the request carries no Authorization: Bearer header with an API key',
      {},
      CHALLENGE,
    );
  }
  if (rest.length > 0 || token.length > MAX_TOKEN_CHARACTERS) {
    throw invalidKey('the API key is unknown, malformed, revoked or expired');
  }
  return token;
}

function invalidKey(message: string): ApiError {
  return new ApiError(ErrorCode.AUTH_INVALID_KEY, message, {}, CHALLENGE);
}
