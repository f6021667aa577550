import type { KeyObject } from 'node:crypto';
import { AuditAction } from '../../../gen/attestation/admin/v1/audit_pb.js';
import type { SignInRequest } from '../../../gen/attestation/admin/v1/sessions_pb.js';
import { Role } from '../../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import type { Call } from '../core/call.js';
import { ApiError } from '../core/errors.js';
import { assertSameOrigin } from '../core/http/same-origin.js';
import { readSessionCookie, sessionCookie } from '../core/http/session-cookie.js';
import type { Logger } from '../core/logger.js';
import type { Session } from '../core/principal.js';
import type { Pool, Sql } from '../database/connect.js';
import { hashSessionToken, isSessionToken, newSessionToken, sessionHashes } from '../keys/session-token.js';
import type { SignInLimits } from '../limits/sign-in-limits.js';
import { type AuditIds, recordAction } from './audit-log.js';
import { type PersonSignInDeps, type PersonStarter, readCallback } from './people/sign-in-person.js';
import {
  deleteSession,
  insertSession,
  type NewSession,
  type UsedSessionRow,
  useSession,
  useSignInLink,
} from './store/sessions.js';

/** The dependencies of starting a session. */
export type SignInDeps = AuditIds &
  PersonSignInDeps & {
    pool: Pool;
    /** Hashes the secrets of sessions and links. */
    key: KeyObject;
    limits: SignInLimits;
    isAdmin: (token: string) => Promise<boolean>;
    /** Delays the caller of a wrong link as `isAdmin` does that of a wrong token. */
    delayWrong: () => Promise<unknown>;
    log: Pick<Logger, 'warn'>;
  };

/** Whose session begins, and by which credential, as the audit log has it. */
type Starter = NewSession & { by: 'admin_token' | 'link' | 'provider' } & Partial<PersonStarter>;

/** Finds who signs in, in the transaction of the session. Returns undefined for a wrong credential. */
type FindStarter = (tx: Sql) => Promise<Starter | undefined>;

const SESSION_LIFETIME_MS = 12 * 3_600_000;

/**
 * Starts a session under a new id, sets its cookie, and ends the one that the browser had. What can be used once is used up in
 * the same transaction.
 */
export async function startSession(
  deps: SignInDeps,
  request: SignInRequest,
  call: Call,
): Promise<UsedSessionRow> {
  const { pool, key, limits, random, clock, log } = deps;
  assertSameOrigin(call, deps.dashboardUrl());
  await limits.count(call.peer);
  const findStarter = await readCredential(deps, request, call);
  const token = newSessionToken(random.bytes);
  const row = await pool.begin(async (tx) => {
    const starter = await findStarter(tx);
    if (starter === undefined) return undefined;
    await endEarlier(deps, tx, call);
    const id = `ses_${random.ulid(clock())}`;
    const hash = hashSessionToken(key, starter.personId === undefined ? 'session' : 'person', token);
    await insertSession(tx, { ...starter, id, hash, lifetimeMs: SESSION_LIFETIME_MS });
    await recordStart(deps, tx, call, id, starter);
    await starter.recordMore?.(tx, { ...call, session: sessionOf(id, starter) });
    await limits.forgive(tx, call.peer);
    return useSession(tx, [hash]);
  });
  const { credential } = request;
  if (row === undefined) {
    if (credential.case === 'link') await deps.delayWrong();
    throw new ApiError(ErrorCode.AUTH_INVALID_KEY, refusalOf(request));
  }
  if (credential.case === 'adminToken' && deps.provider !== undefined)
    log.warn({ session: row.id, peer: call.peer }, 'somebody has signed in with the admin token');
  const cookie = { isSecure: isSecure(deps), maxAgeSeconds: SESSION_LIFETIME_MS / 1000 };
  call.responseHeaders.set('set-cookie', sessionCookie(token, cookie));
  return row;
}

/** Whether browsers reach the dashboard by https, so that cookies can be kept off http. */
export function isSecure({ dashboardUrl }: Pick<SignInDeps, 'dashboardUrl'>): boolean {
  return dashboardUrl().startsWith('https:');
}

/** Checks what needs no transaction: the admin token, and the answer of the identity provider. */
async function readCredential(
  deps: SignInDeps,
  { credential }: SignInRequest,
  call: Call,
): Promise<FindStarter> {
  if (credential.case === 'callback') {
    const { findStarter } = await readCallback(deps, credential.value, call);
    return async (tx) => ({ by: 'provider', ...(await findStarter(tx)) });
  }
  if (credential.case === 'link') return (tx) => redeemLink(deps, tx, credential.value);
  const isAdmin = await deps.isAdmin(credential.value ?? '');
  return async () => (isAdmin ? { by: 'admin_token' } : undefined);
}

function refusalOf({ credential }: SignInRequest): string {
  return credential.case === 'link'
    ? 'this sign-in link was used already or has expired; ask for a new one'
    : 'this is not the admin token';
}

async function redeemLink({ key }: SignInDeps, tx: Sql, secret: string): Promise<Starter | undefined> {
  if (!isSessionToken(secret)) return undefined;
  const link = await useSignInLink(tx, hashSessionToken(key, 'link', secret));
  return link && { by: 'link', projectId: link.projectId, linkId: link.id };
}

async function recordStart(
  deps: SignInDeps,
  tx: Sql,
  call: Call,
  id: string,
  starter: Starter,
): Promise<void> {
  const { projectId, linkId, operatorRule, ruleIds = [], by } = starter;
  await recordAction(
    deps,
    tx,
    { ...call, session: sessionOf(id, starter) },
    {
      action: AuditAction.SESSION_STARTED,
      ...(projectId !== undefined && { projectId }),
      resourceId: id,
      detail: {
        by,
        ...(linkId !== undefined && { link: linkId }),
        ...(operatorRule !== undefined && { operator_by: operatorRule }),
        ...(ruleIds.length > 0 && { rules: ruleIds }),
      },
    },
  );
}

/** As the actor of audit entries. */
function sessionOf(id: string, { projectId, person }: Starter): Session {
  return { id, projectId, role: Role.UNSPECIFIED, person };
}

async function endEarlier(deps: SignInDeps, tx: Sql, call: Call): Promise<void> {
  const cookie = readSessionCookie(call.header('cookie'), isSecure(deps));
  if (cookie === undefined || !isSessionToken(cookie)) return;
  const earlier = await useSession(tx, sessionHashes(deps.key, cookie));
  if (earlier !== undefined) await deleteSession(tx, earlier.id, { kind: 'all' });
}
