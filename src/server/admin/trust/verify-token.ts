import { errors, jwtVerify } from 'jose';
import { ApiError } from '../../core/errors.js';
import { ALGORITHMS, CLOCK_TOLERANCE_SECONDS } from './asymmetric.js';
import type { IssuerKeys } from './issuer-keys.js';
import { NotTrusted } from './read-token.js';

/**
 * Verifies signature, issuer and times of a token: `exp`, `iat` and `sub` must be there. Throws NotTrusted, and `service.unavailable` while the keys of the issuer cannot be read.
 */
export async function verifyToken(
  { keys, clock }: { keys: IssuerKeys; clock: () => number },
  token: string,
  issuer: string,
): Promise<{ exp: number }> {
  const nowMs = clock();
  try {
    const { payload } = await jwtVerify(token, keys.of(issuer), {
      algorithms: ALGORITHMS,
      issuer,
      requiredClaims: ['exp', 'iat', 'sub'],
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      currentDate: new Date(nowMs),
    });
    const { iat = 0, exp = 0 } = payload;
    if (iat > nowMs / 1000 + CLOCK_TOLERANCE_SECONDS) throw new NotTrusted('iat is in the future');
    return { exp };
  } catch (error) {
    if (error instanceof ApiError || error instanceof NotTrusted) throw error;
    // jose throws TypeError for a key that cannot be used.
    if (error instanceof errors.JOSEError || error instanceof TypeError) throw new NotTrusted(error.message);
    throw error;
  }
}
