/** The address at which the identity provider ends sessions (OpenID Connect Back-Channel Logout 1.0). */
import { hash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AuditAction, AuditActorKind } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import type { Logger } from '../../core/logger.js';
import type { Pool, Sql } from '../../database/connect.js';
import type { SignInLimits } from '../../limits/sign-in-limits.js';
import type { AuditIds } from '../audit-log.js';
import { insertAuditEntry } from '../store/audit.js';
import { deleteProviderSessions, useLogoutToken } from '../store/logout.js';
import type { IssuerKeys } from '../trust/issuer-keys.js';
import { InvalidLogoutToken, type LogoutToken, MAX_AGE_SECONDS, verifyLogoutToken } from './logout-token.js';

/** The dependencies of the route. `clock`: Unix milliseconds. */
export type LogoutDeps = AuditIds & {
  pool: Pool;
  keys: IssuerKeys;
  issuer: string;
  clientId: string;
  limits: SignInLimits;
  log: Pick<Logger, 'warn'>;
};

const MAX_BYTES = 16 * 1024;

/** Adds the route. Tokens that are wrong count as failed sign-ins of their address. */
export function backChannelLogoutRoute(app: FastifyInstance, deps: LogoutDeps): void {
  void app.register(async (scope) => {
    scope.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: MAX_BYTES },
      (_request, body, done) => done(null, body),
    );
    scope.post('/dashboard/sign-in/back-channel-logout', (request, reply) => serve(deps, request, reply));
  });
}

async function serve(deps: LogoutDeps, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  void reply.header('cache-control', 'no-store');
  const { peer } = request;
  await deps.limits.count(peer);
  try {
    const tokens = new URLSearchParams(String(request.body ?? '')).getAll('logout_token');
    const [text] = tokens;
    if (text === undefined || tokens.length > 1)
      throw new InvalidLogoutToken('there is not one logout_token');
    const token = await verifyLogoutToken(deps, text);
    await deps.pool.begin(async (tx) => {
      await endSessions(deps, tx, token);
      await deps.limits.forgive(tx, peer);
    });
    return reply.code(200).send();
  } catch (error) {
    if (!(error instanceof InvalidLogoutToken)) throw error;
    deps.log.warn({ reason: error.message, peer }, 'a logout token is wrong');
    return reply.code(400).send({ error: 'invalid_request', error_description: error.message });
  }
}

/** Ends the sessions that a token names, once. */
async function endSessions(
  { issuer, random, clock }: LogoutDeps,
  tx: Sql,
  { id, subject, providerSession }: LogoutToken,
): Promise<void> {
  const isNew = await useLogoutToken(tx, hash('sha256', id, 'buffer'), 2 * MAX_AGE_SECONDS);
  if (!isNew) throw new InvalidLogoutToken('it was used already');
  const ended = await deleteProviderSessions(tx, { issuer, subject, providerSession });
  for (const { id: resourceId, person } of ended) {
    await insertAuditEntry(tx, {
      id: `aud_${random.ulid(clock())}`,
      projectId: null,
      actorKind: AuditActorKind.SYSTEM,
      actorId: 'identity provider',
      action: AuditAction.SESSION_ENDED,
      resourceId,
      requestId: null,
      detail: { by: 'provider', person },
    });
  }
}
