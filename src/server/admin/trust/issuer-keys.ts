import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { LRUCache } from 'lru-cache';
import { unavailable } from '../../core/errors.js';
import type { Logger } from '../../core/logger.js';
import type { FetchJson } from './fetch-json.js';

/** Finds the key that a token names among those that its issuer publishes. */
export type IssuerKeys = { of: (issuer: string) => JWTVerifyGetKey };

type IssuerKeysDeps = {
  /** The client for an issuer. */
  fetchOf: (issuer: string) => FetchJson;
  log: Pick<Logger, 'warn'>;
  /** Monotonic milliseconds. */
  monotonicMs: () => number;
};

/** What is known of an issuer. Times are monotonic milliseconds. */
type Known = {
  keys: { find: JWTVerifyGetKey; untilMs: number } | undefined;
  /** The keys are not read again for a token with an unknown one before. */
  nextRefreshMs: number;
  /** They are not read again after a failure before. */
  nextReadMs: number;
  reading: Promise<JWTVerifyGetKey> | undefined;
};

const MAX_ISSUERS = 1_000;
/** A key that the issuer has withdrawn is trusted no longer than this. */
const TTL_MS = 10 * 60_000;
const REFRESH_MS = 60_000;
const AFTER_FAILURE_MS = 5_000;

/**
 * Reads the keys of issuers by OpenID Connect Discovery 1.0 and caches them for ten minutes. They are read again if a token
 * names another key, at most once a minute for each issuer. A look-up rejects with `service.unavailable` while the keys
 * cannot be read, and with an error of jose if there is no such key. To be called for issuers only that a trust rule names.
 */
export function createIssuerKeys(deps: IssuerKeysDeps): IssuerKeys {
  const { monotonicMs } = deps;
  const issuers = new LRUCache<string, Known>({ max: MAX_ISSUERS });
  const knownOf = (issuer: string): Known => {
    const known = issuers.get(issuer) ?? {
      keys: undefined,
      nextRefreshMs: 0,
      nextReadMs: 0,
      reading: undefined,
    };
    issuers.set(issuer, known);
    return known;
  };
  /** Concurrent callers share one read. */
  const read = (issuer: string, known: Known): Promise<JWTVerifyGetKey> => {
    known.reading ??= readOnce(deps, issuer, known).finally(() => {
      known.reading = undefined;
    });
    return known.reading;
  };
  return {
    of: (issuer) => async (header, token) => {
      const known = knownOf(issuer);
      const { keys } = known;
      const find = keys !== undefined && monotonicMs() < keys.untilMs ? keys.find : await read(issuer, known);
      try {
        return await find(header, token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey) || monotonicMs() < known.nextRefreshMs) throw error;
        known.nextRefreshMs = monotonicMs() + REFRESH_MS;
        return (await read(issuer, known))(header, token);
      }
    },
  };
}

async function readOnce(
  { fetchOf, log, monotonicMs }: IssuerKeysDeps,
  issuer: string,
  known: Known,
): Promise<JWTVerifyGetKey> {
  if (monotonicMs() < known.nextReadMs) throw unreadable(issuer);
  try {
    const find = createLocalJWKSet(await readKeys(fetchOf(issuer), issuer));
    known.keys = { find, untilMs: monotonicMs() + TTL_MS };
    return find;
  } catch (err) {
    known.nextReadMs = monotonicMs() + AFTER_FAILURE_MS;
    log.warn({ err, issuer }, 'the keys of an issuer cannot be read');
    throw unreadable(issuer, err);
  }
}

async function readKeys(fetchJson: FetchJson, issuer: string): Promise<JSONWebKeySet> {
  const discovery = await fetchJson(discoveryUrl(issuer));
  const { issuer: named, jwks_uri: uri } = Object(discovery) as Record<string, unknown>;
  if (named !== issuer) throw new Error(`the discovery document names the issuer ${JSON.stringify(named)}`);
  if (typeof uri !== 'string' || !URL.canParse(uri) || new URL(uri).protocol !== new URL(issuer).protocol)
    throw new Error('the discovery document has no jwks_uri, or one that is not https');
  // createLocalJWKSet checks its form.
  return (await fetchJson(uri)) as JSONWebKeySet;
}

/** The address of an issuer's discovery document. */
export function discoveryUrl(issuer: string): string {
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
}

function unreadable(issuer: string, cause?: unknown) {
  const message = `the keys of ${issuer} cannot be read now, so that its tokens cannot be verified`;
  return unavailable(message, AFTER_FAILURE_MS / 1000, cause);
}
