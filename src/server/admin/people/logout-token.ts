import { errors, type JWTPayload, jwtVerify } from 'jose';
import { ALGORITHMS, CLOCK_TOLERANCE_SECONDS } from '../trust/asymmetric.js';
import type { IssuerKeys } from '../trust/issuer-keys.js';

/** What the provider ends: a session of its own, or all of a subject. `id` is the token's. */
export type LogoutToken = { id: string; subject: string | undefined; providerSession: string | undefined };

/** A logout token is not one of this provider for this client. */
export class InvalidLogoutToken extends Error {
  override readonly name = 'InvalidLogoutToken';
}

const EVENT = 'http://schemas.openid.net/event/backchannel-logout';
const TYPES = ['logout+jwt', 'application/logout+jwt', 'jwt'];
/** How old a token may be: for so long ids of used ones are kept. */
export const MAX_AGE_SECONDS = 600;

/**
 * Verifies a logout token (OpenID Connect Back-Channel Logout 1.0, section 2.6). Throws InvalidLogoutToken, and
 * `service.unavailable` while the keys of the provider cannot be read.
 */
export async function verifyLogoutToken(
  {
    keys,
    issuer,
    clientId,
    clock,
  }: { keys: IssuerKeys; issuer: string; clientId: string; clock: () => number },
  token: string,
): Promise<LogoutToken> {
  try {
    const { payload, protectedHeader } = await jwtVerify(token, keys.of(issuer), {
      algorithms: ALGORITHMS,
      issuer,
      audience: clientId,
      requiredClaims: ['iat', 'exp', 'jti', 'events'],
      maxTokenAge: MAX_AGE_SECONDS,
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      currentDate: new Date(clock()),
    });
    const { typ = 'JWT' } = protectedHeader;
    if (!TYPES.includes(typ.toLowerCase())) throw new InvalidLogoutToken('its typ is another one');
    return readClaims(payload);
  } catch (error) {
    // jose throws TypeError for a key that cannot be used.
    if (error instanceof errors.JOSEError || error instanceof TypeError)
      throw new InvalidLogoutToken(error.message);
    throw error;
  }
}

/** An ID token has a nonce and no such event. */
function readClaims({ jti, sub, sid, events, nonce }: JWTPayload): LogoutToken {
  const event = Object.hasOwn(Object(events), EVENT) ? (events as Record<string, unknown>)[EVENT] : undefined;
  if (typeof event !== 'object' || event === null || Array.isArray(event))
    throw new InvalidLogoutToken(`its events have no ${EVENT}`);
  if (nonce !== undefined) throw new InvalidLogoutToken('it has a nonce');
  const subject = textOf(sub);
  const providerSession = textOf(sid);
  if (subject === undefined && providerSession === undefined)
    throw new InvalidLogoutToken('it has neither sid nor sub');
  const id = textOf(jti);
  if (id === undefined) throw new InvalidLogoutToken('its jti is no text');
  return { id, subject, providerSession };
}

function textOf(claim: unknown): string | undefined {
  return typeof claim === 'string' && claim !== '' && !claim.includes('\0') ? claim : undefined;
}
