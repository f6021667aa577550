import type { Metrics } from './metrics.js';

/** Adds the gauge of LOG_STORAGE. Each worker has the sizes that it has seen. */
export function addStorageGauge(metrics: Metrics, sizes: () => ReadonlyMap<string, number>): void {
  metrics.addGauge({
    name: 'attest_log_stored_size',
    help: 'Tree size of the newest checkpoint in LOG_STORAGE, as this worker last saw it',
    labelNames: ['log'],
    read: async () => [...sizes()].map(([log, value]) => ({ labels: { log }, value })),
  });
}
