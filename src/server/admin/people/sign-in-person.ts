/** Signing in as a person, at the identity provider. */
import type { KeyObject } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import type { StartSignInRequest } from '../../../../gen/attestation/admin/v1/sessions_pb.js';
import { RoleSchema } from '../../../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { ClaimCondition } from '../../../config/oidc-settings.js';
import { enumName } from '../../../protocol/enum-names.js';
import type { Call } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import { assertSameOrigin } from '../../core/http/same-origin.js';
import { readSessionCookie } from '../../core/http/session-cookie.js';
import type { SignedInPerson } from '../../core/principal.js';
import type { RandomSource } from '../../core/random.js';
import type { Sql } from '../../database/connect.js';
import { hashSessionToken, isSessionToken } from '../../keys/session-token.js';
import { recordAction } from '../audit-log.js';
import { useInvitation } from '../store/invitations.js';
import { findMember, hasRole, recordPerson, setInvitedRole, setRolesByRules } from '../store/people.js';
import { readRoleRules } from '../store/role-rules.js';
import type { NewSession, UsedSessionRow } from '../store/sessions.js';
import { meetsCondition } from '../trust/match-rule.js';
import { type ClaimedPerson, claimedPerson } from './claimed-person.js';
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
export type PersonStarter = NewSession & {
  person: SignedInPerson;
  /** The rules that give him a role. */
  ruleIds: string[];
  /** Records what else was done, once the session is there; `call` has it. */
  recordMore: ((tx: Sql, call: Call) => Promise<void>) | undefined;
};

/** Begins a sign-in at the provider. @returns where to go on, and the cookie that binds it to the browser */
export async function startAtProvider(
  deps: PersonSignInDeps,
  { invitation }: StartSignInRequest,
  call: Call,
): Promise<{ cookie: string; url: string }> {
  assertSameOrigin(call, deps.dashboardUrl());
  if (invitation !== '' && !isSessionToken(invitation)) throw usedInvitation();
  const { key, random, clock } = deps;
  const begun = { randomBytes: random.bytes, nowMs: clock(), invitation: invitation || undefined };
  const { cookie, ...flow } = newFlow(key, begun);
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
  const claimed = claimedPerson(claims);
  const operator = deps.operators.find(({ claim, pattern }) => meetsCondition(claims, claim, pattern));
  return {
    findStarter: async (tx) => {
      const { subject, name, email, providerSession } = claimed;
      const id = `per_${deps.random.ulid(deps.clock())}`;
      const person = await recordPerson(tx, { id, issuer: provider.issuer, subject, name, email });
      const ruleIds = await applyRules(tx, person.id, claims);
      const recordMore = await acceptInvitation(deps, tx, { flow, person, claimed });
      // What was written is rolled back with the error.
      if (operator === undefined && !(await hasRole(tx, person.id))) throw noAccess(provider, email || name);
      const operatorRule = operator && ruleText(operator);
      return { person, personId: person.id, providerSession, operatorRule, ruleIds, recordMore };
    },
  };
}

/** Gives a person the roles of the rules that his claims meet, and takes those of the others. @returns the rules' ids */
async function applyRules(tx: Sql, personId: string, claims: JsonObject): Promise<string[]> {
  const rules = await readRoleRules(tx);
  const met = rules.filter(({ conditions }) =>
    Object.entries(conditions).every(([name, pattern]) => meetsCondition(claims, name, pattern)),
  );
  const ruleIds = met.map(({ id }) => id);
  await setRolesByRules(tx, personId, ruleIds);
  return ruleIds;
}

type Acceptance = { flow: SignInFlow; person: SignedInPerson; claimed: ClaimedPerson };

/** Gives a person the role of the invitation that he signs in with. Throws `auth.invalid_key` if it is not his, or was used. */
async function acceptInvitation(
  deps: PersonSignInDeps,
  tx: Sql,
  { flow, person, claimed }: Acceptance,
): Promise<PersonStarter['recordMore']> {
  if (flow.invitation === undefined) return undefined;
  const invitation = await useInvitation(tx, hashSessionToken(deps.key, 'invitation', flow.invitation));
  if (invitation === undefined) throw usedInvitation();
  const { id, projectId, email } = invitation;
  if (email !== null && !(claimed.isEmailVerified && claimed.email.toLowerCase() === email.toLowerCase())) {
    const message =
      'this invitation is for another e-mail address, or the identity provider has not verified yours';
    throw new ApiError(ErrorCode.AUTH_INVALID_KEY, message);
  }
  const earlier = await findMember(tx, person.id, projectId);
  const role = Math.max(invitation.role, earlier?.invitedAs ?? 0);
  await setInvitedRole(tx, { personId: person.id, projectId, role });
  return (own, call) =>
    recordAction(deps, own, call, {
      action: AuditAction.MEMBER_ADDED,
      ...(projectId !== null && { projectId }),
      resourceId: person.id,
      detail: { role: enumName(RoleSchema, role), invitation: id },
    });
}

function usedInvitation(): ApiError {
  const message = 'this invitation was accepted already, taken back, or has expired; ask for a new one';
  return new ApiError(ErrorCode.AUTH_INVALID_KEY, message);
}

/** Whether a person is an operator now: by the setting, for as long as it has the condition, or by a role. */
export function isOperator(
  { operatorRule, memberships }: Pick<UsedSessionRow, 'operatorRule' | 'memberships'>,
  operators: readonly ClaimCondition[],
): boolean {
  return (
    operators.some((condition) => ruleText(condition) === operatorRule) ||
    memberships.some(({ projectId }) => projectId === null)
  );
}

/** A condition of OIDC_OPERATORS as sessions keep it. */
function ruleText({ claim, pattern }: ClaimCondition): string {
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
