import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { Call } from '../call.js';
import { ApiError } from '../errors.js';

const JSON_TYPE = /^application\/json\s*(?:;|$)/i;

/**
 * Throws `auth.insufficient_scope` unless the dashboard's own page made the call: Connect with JSON, which no form can
 * send, and by `Sec-Fetch-Site` (Fetch Metadata), or else by `Origin`, from the origin that it was sent to.
 *
 * @param publicUrl the address of the dashboard, for a proxy that does not pass the Host header on
 */
export function assertSameOrigin({ header }: Pick<Call, 'header'>, publicUrl: string): void {
  const isConnect =
    header('connect-protocol-version') === '1' && JSON_TYPE.test(header('content-type') ?? '');
  const site = header('sec-fetch-site');
  const isOwn = site === undefined ? isOwnOrigin(header, publicUrl) : site === 'same-origin';
  if (isConnect && isOwn) return;
  throw new ApiError(
    ErrorCode.AUTH_INSUFFICIENT_SCOPE,
    'a session is for calls of the dashboard itself: Connect with JSON, from its own origin',
    { required: 'same-origin' },
  );
}

/** A browser sends `Origin` with every POST, a page elsewhere cannot change it. */
function isOwnOrigin(header: Call['header'], publicUrl: string): boolean {
  const origin = header('origin');
  if (origin === undefined || !URL.canParse(origin)) return false;
  const host = header(':authority') ?? header('host');
  return new URL(origin).host === host || origin === new URL(publicUrl).origin;
}
