import type { FastifyInstance } from 'fastify';
import { PersonService } from '../../../../gen/attestation/admin/v1/people_pb.js';
import { SessionService } from '../../../../gen/attestation/admin/v1/sessions_pb.js';
import type { Config } from '../../../config/config.js';
import { SCOPES } from '../../../protocol/scopes.js';
import { backChannelLogoutRoute } from '../../admin/people/back-channel-logout.js';
import { personHandlers } from '../../admin/people/people.js';
import { openProvider } from '../../admin/people/provider.js';
import { createSessionPrincipals } from '../../admin/session-principals.js';
import { sessionHandlers } from '../../admin/sessions.js';
import { createFetchJson } from '../../admin/trust/fetch-json.js';
import { createIssuerKeys, type IssuerKeys } from '../../admin/trust/issuer-keys.js';
import type { Logger } from '../../core/logger.js';
import { createRandomSource } from '../../core/random.js';
import type { Pool } from '../../database/connect.js';
import type { ServerDeps } from '../../http/server.js';
import type { ServiceEntry } from '../../http/services.js';
import { deriveSessionKey } from '../../keys/session-token.js';
import { createSignInLimits } from '../../limits/sign-in-limits.js';
import type { Cursors } from '../../rpc/cursor.js';

/** The dashboard: its sessions, and the services of sessions and people. */
export type Dashboard = {
  sessions: NonNullable<ServerDeps['sessions']>;
  services: ServiceEntry[];
  /** Adds what is no RPC: the address at which the identity provider ends sessions. */
  routes: (app: FastifyInstance) => void;
};

type DashboardDeps = {
  config: Config;
  pool: Pool;
  /** Counts sign-ins and looks sessions up. */
  localPool: Pool;
  cursors: Cursors;
  log: Logger;
  /** Tells every process of a changed key or trust rule. */
  onKeyChange: (id: string) => void;
  baseUrl: () => string;
  verifyUrl: () => string;
  isAdmin: (token: string) => Promise<boolean>;
  delayWrong: () => Promise<unknown>;
};

/** Wires the dashboard. Returns undefined if it is switched off, or if there is nothing to sign in with. */
export function createDashboard(deps: DashboardDeps): Dashboard | undefined {
  const { config, pool, localPool, log } = deps;
  const { oidc } = config;
  const { adminToken } = config.secrets;
  const secret = adminToken ?? oidc?.clientSecret;
  if (!config.hasDashboard || secret === undefined) return undefined;
  const shared = {
    pool,
    key: deriveSessionKey(secret),
    scopes: SCOPES,
    operators: oidc?.operators ?? [],
    dashboardUrl: () => dashboardUrl(deps),
  };
  const limits = createSignInLimits(localPool, Date.now);
  const own = { ...shared, clock: Date.now, random: createRandomSource() };
  const handlers = sessionHandlers({
    ...deps,
    ...own,
    hasAdminToken: adminToken !== undefined,
    provider: oidc && openProvider({ oidc, log, monotonicMs: () => performance.now() }),
    limits,
  });
  const sessions = createSessionPrincipals({ ...shared, pool: localPool });
  const services = [
    { desc: SessionService, handlers },
    { desc: PersonService, handlers: personHandlers({ ...deps, ...own }) },
  ];
  const routes = (app: FastifyInstance) => {
    if (oidc !== undefined)
      backChannelLogoutRoute(app, { ...deps, ...own, ...oidc, limits, keys: providerKeys(log) });
  };
  return { sessions, services, routes };
}

/** The operator has chosen the provider: it may be at any address. */
function providerKeys(log: Logger): IssuerKeys {
  const fetchJson = createFetchJson(undefined);
  return createIssuerKeys({ fetchOf: () => fetchJson, log, monotonicMs: () => performance.now() });
}

/** As configured, else that of the listener that has the admin API. */
function dashboardUrl({ config, baseUrl }: DashboardDeps): string {
  const { adminHost, adminPort, tls } = config;
  if (config.dashboardUrl !== undefined) return config.dashboardUrl;
  return adminPort === undefined ? baseUrl() : `${tls ? 'https' : 'http'}://${adminHost}:${adminPort}`;
}
