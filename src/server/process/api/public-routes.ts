import type { FastifyInstance } from 'fastify';
import type { LogSigner } from '../../../proof/log/log-signature.js';
import type { Pool } from '../../database/connect.js';
import type { Register } from '../../log/register/register.js';
import type { Log } from '../../log/store/logs.js';
import { createLogPageReader } from '../../public/log-page.js';
import { createLogReader } from '../../public/log-reader.js';
import {
  createPublicBundleReader,
  type PublicBundleDeps,
  publicLookupRoutes,
} from '../../public/public-lookup.js';
import { PUBLIC_PATH, type TlogDeps, tlogRoutes } from '../../public/routes.js';
import { scittKeyRoutes } from '../../public/scitt-keys.js';
import { tufRoutes } from '../../public/tuf/routes.js';
import { apiDocumentRoutes } from '../../web/api-documents.js';
import { badgeRoutes } from '../../web/badge-routes.js';
import { docsRoutes } from '../../web/docs/routes.js';
import { startPageRoutes } from '../../web/start/start-page.js';
import { verifyPageRoutes } from '../../web/verify-page.js';

/** The dependencies of the unauthenticated routes. */
type PublicRoutesDeps = Pick<TlogDeps, 'logCache' | 'trustRoots'> & {
  pool: Pool;
  lookup: Pick<PublicBundleDeps, 'isDefault' | 'findBundle'>;
  register: Register;
  signerOf: (log: Log) => LogSigner;
  baseUrl: () => string;
  verifyUrl: () => string;
  /** Whether this listener has the dashboard. */
  hasDashboard: boolean;
};

/** Registers the routes of the public log, the start page, the documentation and the verify page. */
export function publicRoutes(deps: PublicRoutesDeps): (app: FastifyInstance) => Promise<void> {
  const { pool, logCache, signerOf, lookup } = deps;
  const monotonicMs = () => performance.now();
  return async (app) => {
    startPageRoutes(app, deps);
    apiDocumentRoutes(app, deps);
    docsRoutes(app, deps);
    verifyPageRoutes(app, { path: PUBLIC_PATH });
    // In a Fastify scope of its own, because it sets an error handler.
    await app.register(async (scope) => {
      tlogRoutes(scope, {
        ...deps,
        readLogPage: createLogPageReader({ ...deps, monotonicMs }),
        logReader: createLogReader(pool, logCache, signerOf),
      });
      tufRoutes(scope, pool, PUBLIC_PATH);
      scittKeyRoutes(scope, deps.trustRoots);
      const readPublicBundle = createPublicBundleReader({ pool, ...lookup });
      publicLookupRoutes(scope, { ...deps, ...lookup, readPublicBundle, monotonicMs });
      const readTrustRoots = deps.trustRoots.read;
      badgeRoutes(scope, { readPublicBundle, readTrustRoots, now: () => new Date() }, PUBLIC_PATH);
    });
  };
}
