import type { JsonObject } from '@bufbuild/protobuf';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { ApiError } from '../../core/errors.js';
import { storableText } from '../../database/storable-text.js';

/** Who the claims of the identity provider are about. */
export type ClaimedPerson = {
  subject: string;
  name: string;
  /** Empty without one. */
  email: string;
  /** Whether the provider has verified it. */
  isEmailVerified: boolean;
  /** The provider's own session, to be named when it ends; null if it names none. */
  providerSession: string | null;
};

const MAX_SUBJECT_BYTES = 1024;
const MAX_TEXT = 320;

/** Reads whom verified claims are about. Throws `auth.invalid_key` for a subject that cannot be stored. */
export function claimedPerson(claims: JsonObject): ClaimedPerson {
  const { sub, sid, email_verified: isEmailVerified } = claims;
  if (
    typeof sub !== 'string' ||
    sub === '' ||
    Buffer.byteLength(sub) > MAX_SUBJECT_BYTES ||
    !isStorable(sub)
  ) {
    const message = `the identity provider names you by no text of 1 to ${MAX_SUBJECT_BYTES} bytes`;
    throw new ApiError(ErrorCode.AUTH_INVALID_KEY, message);
  }
  const email = shownText(claims.email);
  const isSessionNamed = typeof sid === 'string' && sid !== '' && sid.length <= MAX_TEXT && isStorable(sid);
  return {
    subject: sub,
    name: shownText(claims.name) || shownText(claims.preferred_username) || email || shownText(sub),
    email,
    isEmailVerified: isEmailVerified === true,
    providerSession: isSessionNamed ? sid : null,
  };
}

/** A text without control characters, cut to 320 characters; empty for anything else. */
function shownText(value: unknown): string {
  if (typeof value !== 'string') return '';
  return storableText(
    value
      .replace(/\p{Cc}/gu, ' ')
      .trim()
      .slice(0, MAX_TEXT),
  );
}

function isStorable(text: string): boolean {
  return storableText(text) === text;
}
