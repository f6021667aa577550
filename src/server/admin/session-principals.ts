import type { KeyObject } from 'node:crypto';
import { Role } from '../../../gen/attestation/options/v1/options_pb.js';
import { Environment, EnvironmentSchema } from '../../../gen/attestation/v1/environment_pb.js';
import type { ClaimCondition } from '../../config/oidc-settings.js';
import { findEnumNumber } from '../../protocol/enum-names.js';
import type { Call } from '../core/call.js';
import { assertSameOrigin } from '../core/http/same-origin.js';
import { readSessionCookie } from '../core/http/session-cookie.js';
import type { Principal, Session } from '../core/principal.js';
import type { Pool } from '../database/connect.js';
import { invalidRequest } from '../json/problems.js';
import { isSessionToken, sessionHashes } from '../keys/session-token.js';
import { isOperator } from './people/sign-in-person.js';
import { getProject } from './projects.js';
import { DEFAULT_LIMITS, findApiKey } from './store/api-keys.js';
import { type UsedSessionRow, useSession } from './store/sessions.js';
import { findTrustRule } from './store/trust-rules.js';

/** Dependencies of the look-up of sessions. */
type SessionPrincipalDeps = {
  pool: Pool;
  /** Hashes the secrets of sessions. */
  key: KeyObject;
  /** Every scope: each RPC's `session` option decides whether a session may call it. */
  scopes: readonly string[];
  /** Who is an operator now. */
  operators: readonly ClaimCondition[];
  dashboardUrl: () => string;
};

/** Looks up sessions and the principals that they act as. */
type SessionPrincipals = {
  readCookie(call: Call): string | undefined;
  assertSameOrigin(call: Call): void;
  find(cookie: string, call: Call): Promise<Session | undefined>;
  principalOf(session: Session, call: Call): Promise<Principal>;
  projectOfKey(apiKeyId: string): Promise<string | undefined>;
  projectOfRule(trustRuleId: string): Promise<string | undefined>;
};

/** The default of an API key. */
const READS_PER_SECOND = DEFAULT_LIMITS.readsPerSecond;

/** Sessions are not cached: one that has ended, has ended in every process. */
export function createSessionPrincipals(deps: SessionPrincipalDeps): SessionPrincipals {
  const { pool, key, scopes, operators, dashboardUrl } = deps;
  return {
    readCookie: (call) => readSessionCookie(call.header('cookie'), dashboardUrl().startsWith('https:')),
    assertSameOrigin: (call) => assertSameOrigin(call, dashboardUrl()),
    async find(cookie, call) {
      if (!isSessionToken(cookie)) return undefined;
      const row = await useSession(pool, sessionHashes(key, cookie));
      return row && { id: row.id, ...rightsOf(row, operators, call.header('attest-project')) };
    },
    async principalOf({ id, projectId }, call) {
      return {
        id,
        projectId: projectId ?? (await namedProject(pool, call)),
        environment: namedEnvironment(call),
        scopes,
        submissionWindows: [],
        readWindow: { windowSeconds: 1, limit: READS_PER_SECOND },
      };
    },
    projectOfKey: async (apiKeyId) => (await findApiKey(pool, apiKeyId))?.projectId,
    projectOfRule: async (trustRuleId) => (await findTrustRule(pool, trustRuleId))?.projectId,
  };
}

/** A link's session manages its project. A person has the role of the project that is named, or of his only one. */
export function rightsOf(
  row: UsedSessionRow,
  operators: readonly ClaimCondition[],
  named: string | undefined,
): Omit<Session, 'id'> {
  const { projectId, person, memberships } = row;
  if (projectId !== null) return { projectId, role: Role.ADMIN };
  if (person === null) return { projectId: undefined, role: Role.OPERATOR };
  if (isOperator(row, operators)) return { projectId: undefined, role: Role.OPERATOR, person };
  const [only, ...others] = memberships;
  const chosen =
    named === undefined && others.length === 0 ? only : memberships.find((one) => one.projectId === named);
  return { projectId: chosen?.projectId ?? '', role: chosen?.role ?? Role.UNSPECIFIED, person };
}

async function namedProject(pool: Pool, { header }: Call): Promise<string> {
  const named = header('attest-project');
  if (named === undefined) throw invalid('Attest-Project names the project that the session acts for');
  return (await getProject(pool, named)).id;
}

function namedEnvironment({ header }: Call): Principal['environment'] {
  const found = findEnumNumber(EnvironmentSchema, header('attest-environment') ?? 'live');
  if (found === Environment.LIVE || found === Environment.TEST) return found;
  throw invalid('Attest-Environment is live or test');
}

function invalid(message: string): Error {
  return invalidRequest([{ path: '', message }]);
}
