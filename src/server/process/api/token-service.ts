import { TokenService } from '../../../../gen/attestation/v1/tokens_pb.js';
import type { Config } from '../../../config/config.js';
import { tokenHandlers } from '../../admin/trust/exchange-token.js';
import { createFetchJson } from '../../admin/trust/fetch-json.js';
import { createIssuerKeys } from '../../admin/trust/issuer-keys.js';
import type { Logger } from '../../core/logger.js';
import type { Principal } from '../../core/principal.js';
import { createRandomSource } from '../../core/random.js';
import type { RateState } from '../../core/rate-window.js';
import type { Pool } from '../../database/connect.js';
import type { ServiceEntry } from '../../http/services.js';
import { deriveKeyRing } from '../../keys/key-ring.js';
import { createTokenLimits } from '../../limits/token-limits.js';
import { findDestinationProblem, resolveByDns } from '../../net/destination.js';
import { newSecret } from '../first-keys.js';

type TokenServiceDeps = {
  pool: Pool;
  /** Counts tokens that are not trusted. */
  localPool: Pool;
  log: Logger;
  baseUrl: () => string;
  takeReads: (principal: Principal, count: number) => Promise<RateState>;
  /** Tells every process of a changed key. */
  onKeyChange: (id: string) => void;
};

/** TokenService over an open database. */
export function tokenService(config: Config, deps: TokenServiceDeps): ServiceEntry {
  const { log, localPool } = deps;
  const apiKeys = deriveKeyRing(config.secrets.secretKeys, 'api-key');
  const fetchPublic = createFetchJson({ allowInsecure: config.allowInsecureDestinations });
  const fetchPrivate = createFetchJson(undefined);
  const handlers = tokenHandlers({
    ...deps,
    clock: Date.now,
    random: createRandomSource(),
    keys: createIssuerKeys({
      fetchOf: (issuer) => (config.privateIssuers.includes(issuer) ? fetchPrivate : fetchPublic),
      log,
      monotonicMs: () => performance.now(),
    }),
    limits: createTokenLimits(localPool, Date.now),
    createSecret: (environment) => newSecret(apiKeys, environment),
  });
  return { desc: TokenService, handlers };
}

/** Finds why the keys of an issuer may not be read at an address. Private issuers may be at every one. */
export function issuerUrlProblem({
  allowInsecureDestinations: allowInsecure,
  privateIssuers,
}: Config): (issuer: string, url: string) => Promise<string | undefined> {
  return async (issuer, url) =>
    privateIssuers.includes(issuer)
      ? undefined
      : findDestinationProblem({ allowInsecure, resolve: resolveByDns }, url);
}
