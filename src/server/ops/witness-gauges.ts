import type { Pool } from '../database/connect.js';
import { readWitnessHealth, type WitnessHealth } from '../witnessing/store/witness-status.js';
import { shared } from './gauges.js';
import type { Metrics } from './metrics.js';

const GAUGES: readonly {
  name: string;
  help: string;
  of: (standing: WitnessHealth) => number | undefined;
}[] = [
  {
    name: 'attest_witness_last_success_timestamp_seconds',
    help: 'When a witness handed over evidence last',
    of: ({ lastSuccessAt }) => (lastSuccessAt === null ? undefined : lastSuccessAt.getTime() / 1000),
  },
  {
    name: 'attest_witness_consecutive_failures',
    help: 'How many attempts failed since the last that did not',
    of: ({ failures }) => failures,
  },
  {
    name: 'attest_witness_next_attempt_timestamp_seconds',
    help: 'From when on a witness may be asked again',
    of: ({ nextAttemptAt }) => nextAttemptAt.getTime() / 1000,
  },
  {
    name: 'attest_witness_pending_requests',
    help: 'Requests that a witness has accepted and not yet fulfilled',
    of: ({ pendingRequests }) => pendingRequests,
  },
  {
    name: 'attest_witness_oldest_request_timestamp_seconds',
    help: 'When a witness accepted the oldest of its pending requests',
    of: ({ oldestRequestAt }) => (oldestRequestAt === null ? undefined : oldestRequestAt.getTime() / 1000),
  },
  {
    name: 'attest_witness_leaves_behind',
    help: 'Published leaves that a witness has not vouched for',
    of: ({ publishedTreeSize, coversTreeSize }) => Math.max(0, publishedTreeSize - coversTreeSize),
  },
];

/** Adds the status of each witness per log. Reads the tables once per scrape. */
export function addWitnessGauges(metrics: Metrics, pool: Pool): void {
  const standings = shared(() => readWitnessHealth(pool));
  for (const { name, help, of } of GAUGES) {
    metrics.addGauge({
      name,
      help,
      labelNames: ['log', 'witness'],
      read: async () =>
        (await standings()).flatMap((standing) => {
          const value = of(standing);
          const { origin: log, witness } = standing;
          return value === undefined ? [] : [{ labels: { log, witness }, value }];
        }),
    });
  }
}

/** Adds the counter of answers that contradict a log. @returns a function that counts one, by the name of its witness */
export function alarmCounter(
  metrics: Metrics,
  witnesses: readonly { readonly witness: { readonly name: string } }[],
): (witness: string) => void {
  const alarms = metrics.addCounter(
    'attest_witness_alarms_total',
    'Answers of a witness that contradict the log (a second history, or lost leaves), or its own landed evidence',
    ['witness'],
  );
  for (const { witness } of witnesses) alarms.add(0, { witness: witness.name });
  return (witness) => alarms.add(1, { witness });
}
