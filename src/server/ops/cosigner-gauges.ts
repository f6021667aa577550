import type { GaugeValue, Metrics } from './metrics.js';

/** Adds the metric of `attest witness`: how far it has cosigned each log. */
export function addCosignedSizes(metrics: Metrics, read: () => Promise<GaugeValue>): void {
  metrics.addGauge({
    name: 'attest_cosigned_tree_size',
    help: 'The size of the newest checkpoint of each log that this witness has cosigned',
    labelNames: ['origin'],
    read,
  });
}
