/** The part of step 2 that takes who submitted: the identity in the signed statement. */
import { matchesGlob } from '../../../protocol/glob.js';
import type { Statement } from '../../statement/statement.js';
import { type Check, failed, notChecked, passed } from '../report.js';

/** The identity that must have submitted. */
export type IdentityAsked = {
  /** The issuer of its token, exactly; any by default. */
  readonly issuer?: string | undefined;
  /** The subject of its token; `*` stands for any characters. Any by default. */
  readonly identity?: string | undefined;
};

/**
 * Checks the identity of the statement against what is asked for. The service verified the identity's token when it
 * exchanged it: the statement is the service's word for it.
 */
export function checkIdentity({ identity: stated }: Statement, { issuer, identity }: IdentityAsked): Check[] {
  if (issuer === undefined && identity === undefined) {
    if (stated === undefined) return [];
    const message = `${stated.subject} of ${stated.issuer} submitted it; no identity was asked for`;
    return [notChecked('identity.not_asked', message)];
  }
  if (stated === undefined) {
    const message = 'the statement names no identity: a stored API key submitted it';
    return [failed('identity.missing', message)];
  }
  const isIssuer = issuer === undefined || issuer === stated.issuer;
  const isSubject = identity === undefined || matchesGlob(identity, stated.subject);
  const who = `${stated.subject} of ${stated.issuer}`;
  return isIssuer && isSubject
    ? [passed('identity.matches', `${who} submitted it`)]
    : [
        failed(
          'identity.mismatch',
          `${who} submitted it, not ${identity ?? 'a subject'} of ${issuer ?? 'any issuer'}`,
        ),
      ];
}
