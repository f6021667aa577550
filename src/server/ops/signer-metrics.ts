import type { Metrics } from './metrics.js';

const OUTCOMES = ['signed', 'rejected', 'failed'] as const;

type SignerMetrics = {
  /** Counts a request to sign. */
  observe: (key: string, outcome: (typeof OUTCOMES)[number], ms: number) => void;
  /** The keys whose last signature has failed, in one line; undefined if there is none. */
  findFailing: () => string | undefined;
};

/** Adds the metrics of `attest signer`. */
export function addSignerMetrics(metrics: Metrics, keys: readonly string[]): SignerMetrics {
  const failing = new Set<string>();
  const requests = metrics.addCounter(
    'attest_signer_requests_total',
    'Requests to sign, by key and outcome: signed, rejected (the key may not sign this) or failed (the backend)',
    ['key', 'outcome'],
  );
  // Prometheus sees no increase where there was no series.
  for (const key of keys) for (const outcome of OUTCOMES) requests.add(0, { key, outcome });
  const seconds = metrics.addCounter(
    'attest_signer_seconds_total',
    'Seconds that requests to sign took, the wait for the backend included',
    ['key'],
  );
  metrics.addGauge({
    name: 'attest_signer_key_ready',
    help: '1 if the last signature of the key succeeded, else 0',
    labelNames: ['key'],
    read: () => keys.map((key) => ({ labels: { key }, value: failing.has(key) ? 0 : 1 })),
  });
  return {
    observe: (key, outcome, ms) => {
      requests.add(1, { key, outcome });
      seconds.add(ms / 1000, { key });
      if (outcome === 'failed') failing.add(key);
      else if (outcome === 'signed') failing.delete(key);
    },
    findFailing: () =>
      failing.size === 0 ? undefined : `the last signature of ${[...failing].join(', ')} failed`,
  };
}
