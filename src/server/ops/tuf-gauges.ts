import { expiryOf, TUF_ROLES, type TufStatus } from '../public/tuf/status.js';
import { shared } from './gauges.js';
import type { Metrics } from './metrics.js';

/** Adds the gauges of the TUF repository, which have no value while there is none. */
export function addTufGauges(metrics: Metrics, readStatus: () => Promise<TufStatus>): void {
  const status = shared(readStatus);
  metrics.addGauge({
    name: 'attest_tuf_expiry_timestamp_seconds',
    help: 'When clients stop accepting the metadata of a role of the TUF repository',
    labelNames: ['role'],
    read: async () => {
      const { newest } = await status();
      if (newest === undefined) return [];
      return TUF_ROLES.map((role) => ({ labels: { role }, value: expiryOf(newest[role]).getTime() / 1000 }));
    },
  });
  metrics.addGauge({
    name: 'attest_tuf_outdated',
    help: '1 when the TUF repository differs from the trust roots, until attest tuf publish',
    read: async () => {
      const { newest, isOutdated } = await status();
      return newest === undefined ? [] : Number(isOutdated);
    },
  });
}
