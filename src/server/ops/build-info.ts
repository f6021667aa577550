import { version } from '../core/version.js';
import type { Metrics } from './metrics.js';

/** Adds the version of the process. */
export function addBuildInfo(metrics: Metrics): void {
  metrics.addGauge({
    name: 'attest_build_info',
    help: 'Always 1; the versions of the service and of Node',
    labelNames: ['version', 'node'],
    merge: 'first',
    read: () => [{ labels: { version: version(), node: process.version }, value: 1 }],
  });
}
