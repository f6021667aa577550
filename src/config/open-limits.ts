import { cidrRanges, integer } from './setting-types.js';
import type { Settings } from './settings.js';

/** Maximum concurrent connections, requests and buffered body bytes: in total, and per client address. */
export type OpenLimits = {
  readonly maxConnections: number;
  readonly maxRequests: number;
  readonly maxHeldBytes: number;
  readonly maxConnectionsPerPeer: number;
  readonly maxRequestsPerPeer: number;
  /** Addresses and networks of proxies, to which the per-address limits do not apply. */
  readonly trustedProxies: readonly string[];
};

/** The limits of a public listener. */
export function readOpenLimits(settings: Settings): OpenLimits {
  const count = integer(1, 1_000_000);
  return {
    maxConnections: settings.get('MAX_CONNECTIONS', count, 10_000),
    maxRequests: settings.get('MAX_REQUESTS', count, 4_096),
    maxHeldBytes: settings.get('MAX_BODY_MIB', integer(4, 16_384), 64) * 1024 * 1024,
    maxConnectionsPerPeer: settings.get('MAX_PEER_CONNECTIONS', count, 1_000),
    maxRequestsPerPeer: settings.get('MAX_PEER_REQUESTS', count, 1_000),
    trustedProxies: settings.get('TRUSTED_PROXIES', cidrRanges, ['127.0.0.0/8', '::1']),
  };
}
