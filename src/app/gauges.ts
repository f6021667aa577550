import type { Metrics } from '../metrics.js';
import type { AttemptCounts } from '../pipeline/attempt.js';
import type { Pool } from '../store/connect.js';
import { type Backlog, readBacklogs } from '../store/due.js';
import { readWebhookBacklog, type WebhookBacklog } from '../store/webhook-backlog.js';

/** The figures of each log that say whether the pipeline keeps up; read when they are scraped. */
const GAUGES: readonly { name: string; help: string; of: (backlog: Backlog) => number }[] = [
  {
    name: 'attest_log_unsealed_leaves',
    help: 'Leaves behind the newest batch',
    of: ({ unsealed }) => unsealed,
  },
  {
    name: 'attest_batches_unsettled',
    help: 'Published batches not yet witnessed',
    of: ({ unsettled }) => unsettled,
  },
  {
    name: 'attest_batches_oldest_unsettled_seconds',
    help: 'Age of the oldest published batch that is not yet witnessed',
    of: ({ oldestSeconds }) => oldestSeconds,
  },
  { name: 'attest_log_frozen', help: '1 when the log is frozen', of: ({ frozen }) => Number(frozen) },
];

/** What waits for endpoints, of the whole service. */
const WEBHOOK_GAUGES: readonly { name: string; help: string; of: (backlog: WebhookBacklog) => number }[] = [
  {
    name: 'attest_webhook_deliveries_due',
    help: 'Deliveries that are due and not under way, of the 500 subscriptions that wait longest, 1,000 of each at most',
    of: ({ due }) => due,
  },
  {
    name: 'attest_webhook_oldest_due_seconds',
    help: 'For how long the oldest of those has been due',
    of: ({ oldestSeconds }) => oldestSeconds,
  },
];

/** Adds the pipeline's gauges, one value per log, and those of webhooks. */
export function addPipelineGauges(metrics: Metrics, pool: Pool): void {
  for (const { name, help, of } of GAUGES) {
    metrics.addGauge({
      name,
      help,
      labelNames: ['log'],
      read: async () =>
        (await readBacklogs(pool)).map((backlog) => ({
          labels: { log: backlog.origin },
          value: of(backlog),
        })),
    });
  }
  for (const { name, help, of } of WEBHOOK_GAUGES) {
    metrics.addGauge({ name, help, read: async () => of(await readWebhookBacklog(pool)) });
  }
}

/** Counters of what this worker's attempts came to. */
export function attemptCounters(metrics: Metrics): (counts: AttemptCounts) => void {
  const attempts = metrics.addCounter(
    'attest_webhook_attempts_total',
    'Attempts that were recorded, by outcome: delivered or failed',
    ['outcome'],
  );
  const disablings = metrics.addCounter(
    'attest_webhooks_disabled_total',
    'Subscriptions that the service disabled, after 410 or five days of failures',
  );
  return ({ delivered, failed, disabled }) => {
    attempts.add(delivered, { outcome: 'delivered' });
    attempts.add(failed, { outcome: 'failed' });
    disablings.add(disabled);
  };
}
