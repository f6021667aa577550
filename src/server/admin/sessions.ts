import { create } from '@bufbuild/protobuf';
import { durationMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { AuditAction } from '../../../gen/attestation/admin/v1/audit_pb.js';
import {
  type CreateSignInLinkRequest,
  type Session,
  SessionSchema,
  type SessionService,
  type SignInLink,
  SignInLinkSchema,
  type SignInRequest,
  SignInWaysSchema,
  type SignOutResponse,
  SignOutResponseSchema,
  StartSignInResponseSchema,
} from '../../../gen/attestation/admin/v1/sessions_pb.js';
import { Role } from '../../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import type { Call, Handlers } from '../core/call.js';
import { ApiError } from '../core/errors.js';
import { clearedSessionCookie, readSessionCookie, sessionCookie } from '../core/http/session-cookie.js';
import type { Sql } from '../database/connect.js';
import { hashSessionToken, newSessionToken, sessionHashes } from '../keys/session-token.js';
import { recordAction } from './audit-log.js';
import { type OpenSessionDeps, openSessionHandlers } from './open-sessions.js';
import { FLOW_SECONDS } from './people/sign-in-flow.js';
import { startAtProvider } from './people/sign-in-person.js';
import { getProject } from './projects.js';
import { rightsOf } from './session-principals.js';
import { isSecure, type SignInDeps, startSession } from './sign-in.js';
import type { MembershipRow } from './store/people.js';
import { deleteSession, insertSignInLink, type UsedSessionRow, useSession } from './store/sessions.js';

/** The dependencies of the handlers of SessionService. */
type SessionDeps = OpenSessionDeps &
  SignInDeps & {
    /** Whether there is an admin token. */
    hasAdminToken: boolean;
    /** Every scope that a key can be granted. */
    scopes: readonly string[];
    baseUrl: () => string;
    verifyUrl: () => string;
  };

const LINK_LIFETIME_MS = 15 * 60_000;

/** The handlers of SessionService. */
export function sessionHandlers(deps: SessionDeps): Handlers<typeof SessionService> {
  const { pool } = deps;
  return {
    ...openSessionHandlers(deps),
    createSignInLink: (request, call) => pool.begin((tx) => createLink(deps, tx, request, call)),
    getSignInWays: async () =>
      create(SignInWaysSchema, { provider: deps.provider?.name ?? '', adminToken: deps.hasAdminToken }),
    startSignIn: async (request, call) => {
      const { cookie: secret, url } = await startAtProvider(deps, request, call);
      const options = { isSecure: isSecure(deps), maxAgeSeconds: FLOW_SECONDS, use: 'sign-in' as const };
      call.responseHeaders.set('set-cookie', sessionCookie(secret, options));
      return create(StartSignInResponseSchema, { url });
    },
    signIn: (request, call) => signIn(deps, request, call),
    getSession: async (_request, call) => sessionMessage(deps, await getRow(deps, pool, call), call),
    signOut: (_request, call) => signOut(deps, call),
  };
}

async function signIn(deps: SessionDeps, request: SignInRequest, call: Call): Promise<Session> {
  return sessionMessage(deps, await startSession(deps, request, call), call);
}

/** Ends the session here, and names where that at the provider ends. That one is not reached is no reason to stay signed in. */
async function signOut(deps: SessionDeps, call: Call): Promise<SignOutResponse> {
  const { pool, provider, dashboardUrl } = deps;
  const { id: resourceId = '', person } = call.session ?? {};
  await pool.begin(async (tx) => {
    if ((await deleteSession(tx, resourceId, { kind: 'all' })) !== undefined)
      await recordAction(deps, tx, call, { action: AuditAction.SESSION_ENDED, resourceId });
  });
  call.responseHeaders.set('set-cookie', clearedSessionCookie(isSecure(deps)));
  const providerUrl =
    person && (await provider?.signOutUrl(`${dashboardUrl()}/dashboard/sign-in`).catch(() => undefined));
  return create(SignOutResponseSchema, { providerUrl: providerUrl ?? '' });
}

async function createLink(
  deps: SessionDeps,
  tx: Sql,
  { projectId, lifetime }: CreateSignInLinkRequest,
  call: Call,
): Promise<SignInLink> {
  await getProject(tx, projectId);
  const id = `lnk_${deps.random.ulid(deps.clock())}`;
  const token = newSessionToken(deps.random.bytes);
  const hash = hashSessionToken(deps.key, 'link', token);
  const lifetimeMs = lifetime === undefined ? LINK_LIFETIME_MS : durationMs(lifetime);
  const expiresAt = await insertSignInLink(tx, { id, hash, projectId, lifetimeMs });
  const action = AuditAction.SIGN_IN_LINK_CREATED;
  await recordAction(deps, tx, call, { action, projectId, resourceId: id });
  const url = `${deps.dashboardUrl()}/dashboard/sign-in#${token}`;
  return create(SignInLinkSchema, { id, projectId, url, expiresAt: timestampFromDate(expiresAt) });
}

async function getRow({ key, dashboardUrl }: SessionDeps, sql: Sql, call: Call): Promise<UsedSessionRow> {
  const cookie = readSessionCookie(call.header('cookie'), isSecure({ dashboardUrl })) ?? '';
  const row = await useSession(sql, sessionHashes(key, cookie));
  if (row === undefined) throw new ApiError(ErrorCode.AUTH_INVALID_KEY, 'the session has ended');
  return row;
}

function sessionMessage(
  { scopes, operators, baseUrl, verifyUrl }: SessionDeps,
  row: UsedSessionRow,
  call: Call,
): Session {
  const { id, projectId, projectName, person, memberships, createdAt, expiresAt } = row;
  const { role } = rightsOf(row, operators, call.header('attest-project'));
  return create(SessionSchema, {
    id,
    projectId: projectId ?? '',
    projectName: projectName ?? '',
    createdAt: timestampFromDate(createdAt),
    expiresAt: timestampFromDate(expiresAt),
    ...(person !== null && { person }),
    role,
    memberships: role === Role.OPERATOR ? [] : memberships.flatMap(membershipOf),
    scopes: [...scopes],
    baseUrl: baseUrl(),
    verifyUrl: verifyUrl(),
  });
}

function membershipOf({ projectId, projectName, role }: MembershipRow) {
  return projectId === null ? [] : [{ projectId, projectName: projectName ?? '', role }];
}
