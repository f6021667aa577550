import type { KeyObject } from 'node:crypto';
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
  SignOutResponseSchema,
} from '../../../gen/attestation/admin/v1/sessions_pb.js';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import type { Call, Handlers } from '../core/call.js';
import { ApiError } from '../core/errors.js';
import { assertSameOrigin } from '../core/http/same-origin.js';
import { clearedSessionCookie, readSessionCookie, sessionCookie } from '../core/http/session-cookie.js';
import type { Sql } from '../database/connect.js';
import { hashSessionToken, isSessionToken, newSessionToken } from '../keys/session-token.js';
import type { SignInLimits } from '../limits/sign-in-limits.js';
import { recordAction } from './audit-log.js';
import { type OpenSessionDeps, openSessionHandlers } from './open-sessions.js';
import { getProject } from './projects.js';
import {
  deleteSession,
  insertSession,
  insertSignInLink,
  type SessionRow,
  useSession,
  useSignInLink,
} from './store/sessions.js';

/** The dependencies of the handlers of SessionService. */
type SessionDeps = OpenSessionDeps & {
  /** Hashes the secrets of sessions and links. */
  key: KeyObject;
  limits: SignInLimits;
  isAdmin: (token: string) => Promise<boolean>;
  /** Delays the caller of a wrong link as `isAdmin` does that of a wrong token. */
  delayWrong: () => Promise<unknown>;
  /** Every scope that a key can be granted. */
  scopes: readonly string[];
  dashboardUrl: () => string;
  baseUrl: () => string;
  verifyUrl: () => string;
};

/** The kinds of sign-in: the operator's, and by the link of a project. */
type Credential = { projectId: string | null; linkId?: string };

const LINK_LIFETIME_MS = 15 * 60_000;
const SESSION_LIFETIME_MS = 12 * 3_600_000;

/** The handlers of SessionService. */
export function sessionHandlers(deps: SessionDeps): Handlers<typeof SessionService> {
  const { pool } = deps;
  return {
    ...openSessionHandlers(deps),
    createSignInLink: (request, call) => pool.begin((tx) => createLink(deps, tx, request, call)),
    signIn: (request, call) => signIn(deps, request, call),
    getSession: async (_request, call) => sessionMessage(deps, await getRow(deps, pool, call)),
    signOut: (_request, call) =>
      pool.begin(async (tx) => {
        const resourceId = call.session?.id ?? '';
        if ((await deleteSession(tx, resourceId)) !== undefined)
          await recordAction(deps, tx, call, { action: AuditAction.SESSION_ENDED, resourceId });
        call.responseHeaders.set('set-cookie', clearedSessionCookie(isSecure(deps)));
        return create(SignOutResponseSchema);
      }),
  };
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

/** Starts a session under a new id, and ends the one that the browser had. A link is used up in the same transaction. */
async function signIn(deps: SessionDeps, request: SignInRequest, call: Call): Promise<Session> {
  const { pool, key, limits, random, clock } = deps;
  assertSameOrigin(call, deps.dashboardUrl());
  await limits.count(call.peer);
  const { credential } = request;
  const byToken = credential.case === 'adminToken' && (await deps.isAdmin(credential.value));
  const token = newSessionToken(random.bytes);
  const row = await pool.begin(async (tx) => {
    const who = byToken ? { projectId: null } : await redeemLink(deps, tx, request);
    if (who === undefined) return undefined;
    await endEarlier(deps, tx, call);
    const id = `ses_${random.ulid(clock())}`;
    const hash = hashSessionToken(key, 'session', token);
    const { projectId, linkId = null } = who;
    await insertSession(tx, { id, hash, projectId, linkId, lifetimeMs: SESSION_LIFETIME_MS });
    await recordStart(deps, tx, call, id, who);
    await limits.forgive(tx, call.peer);
    return useSession(tx, hash);
  });
  if (row === undefined) {
    if (credential.case === 'link') await deps.delayWrong();
    throw new ApiError(ErrorCode.AUTH_INVALID_KEY, refusalOf(request));
  }
  const cookie = sessionCookie(token, isSecure(deps), SESSION_LIFETIME_MS / 1000);
  call.responseHeaders.set('set-cookie', cookie);
  return sessionMessage(deps, row);
}

function refusalOf({ credential }: SignInRequest): string {
  return credential.case === 'link'
    ? 'this sign-in link was used already or has expired; ask for a new one'
    : 'this is not the admin token';
}

async function redeemLink(
  { key }: SessionDeps,
  tx: Sql,
  { credential }: SignInRequest,
): Promise<Credential | undefined> {
  if (credential.case !== 'link' || !isSessionToken(credential.value)) return undefined;
  const link = await useSignInLink(tx, hashSessionToken(key, 'link', credential.value));
  return link && { projectId: link.projectId, linkId: link.id };
}

async function recordStart(
  deps: SessionDeps,
  tx: Sql,
  call: Call,
  id: string,
  { projectId, linkId }: Credential,
): Promise<void> {
  await recordAction(
    deps,
    tx,
    { ...call, session: { id, projectId: projectId ?? undefined } },
    {
      action: AuditAction.SESSION_STARTED,
      ...(projectId === null ? {} : { projectId }),
      resourceId: id,
      detail: linkId === undefined ? { by: 'admin_token' } : { by: 'link', link: linkId },
    },
  );
}

async function endEarlier(deps: SessionDeps, tx: Sql, call: Call): Promise<void> {
  const cookie = readSessionCookie(call.header('cookie'), isSecure(deps));
  if (cookie === undefined || !isSessionToken(cookie)) return;
  const earlier = await useSession(tx, hashSessionToken(deps.key, 'session', cookie));
  if (earlier !== undefined) await deleteSession(tx, earlier.id);
}

async function getRow({ key, dashboardUrl }: SessionDeps, sql: Sql, call: Call): Promise<SessionRow> {
  const cookie = readSessionCookie(call.header('cookie'), isSecure({ dashboardUrl })) ?? '';
  const row = await useSession(sql, hashSessionToken(key, 'session', cookie));
  if (row === undefined) throw new ApiError(ErrorCode.AUTH_INVALID_KEY, 'the session has ended');
  return row;
}

/** Whether browsers reach the dashboard by https, so that the cookie can be kept off http. */
function isSecure({ dashboardUrl }: Pick<SessionDeps, 'dashboardUrl'>): boolean {
  return dashboardUrl().startsWith('https:');
}

function sessionMessage(
  { scopes, baseUrl, verifyUrl }: SessionDeps,
  { id, projectId, projectName, createdAt, expiresAt }: SessionRow,
): Session {
  return create(SessionSchema, {
    id,
    projectId: projectId ?? '',
    projectName: projectName ?? '',
    createdAt: timestampFromDate(createdAt),
    expiresAt: timestampFromDate(expiresAt),
    scopes: [...scopes],
    baseUrl: baseUrl(),
    verifyUrl: verifyUrl(),
  });
}
