import { Code, ConnectError } from '@connectrpc/connect';
import { ErrorDetailSchema } from '../../../gen/attestation/v1/errors_pb.js';

/** An error as the page shows it. */
type ShownError = { message: string; code: string; requestId: string };

/** What to show of an error of a call. */
export function describeError(error: unknown): ShownError {
  const { rawMessage, code, details } = ConnectError.from(error);
  const [detail] = details.length === 0 ? [] : ConnectError.from(error).findDetails(ErrorDetailSchema);
  if (detail !== undefined)
    return {
      message: rawMessage + problemsOf(detail.details),
      code: detail.code,
      requestId: detail.requestId,
    };
  const isAway = code === Code.Unknown || code === Code.Unavailable;
  return { message: isAway ? 'The service does not answer.' : rawMessage, code: '', requestId: '' };
}

/** Whether an error means that nobody is signed in. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof ConnectError && error.code === Code.Unauthenticated;
}

/** The single problems of an invalid request. */
function problemsOf(details: Record<string, unknown> | undefined): string {
  const errors = details?.errors;
  if (!Array.isArray(errors)) return '';
  const lines = errors.map(({ path, message }: { path?: string; message?: string }) => `${path} ${message}`);
  return `: ${lines.join('; ')}`;
}
