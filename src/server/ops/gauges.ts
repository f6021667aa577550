import type { Pool } from '../database/connect.js';
import type { LogKeyState } from '../log/log-key-states.js';
import { type Backlog, readBacklogs } from '../pipeline/due-jobs.js';
import type { AttemptCounts } from '../webhooks/delivery/attempt.js';
import { readWebhookBacklog, type WebhookBacklog } from '../webhooks/store/webhook-backlog.js';
import type { Metrics } from './metrics.js';

/** A value per log; undefined values are omitted. */
type LogGauge = { name: string; help: string; of: (backlog: Backlog) => number | undefined };

/** Without logs that a new epoch replaced. */
const whileOpen =
  (of: (backlog: Backlog) => number | undefined): LogGauge['of'] =>
  (backlog) =>
    backlog.ended ? undefined : of(backlog);

const FROZEN: LogGauge = {
  name: 'attest_log_frozen',
  help: '1 when the log is frozen and no new epoch has taken its place',
  of: ({ frozen, ended }) => Number(frozen && !ended),
};

/** The pipeline's gauges per log, read on each scrape. */
const GAUGES: readonly LogGauge[] = [
  {
    name: 'attest_log_unsealed_leaves',
    help: 'Leaves behind the newest batch',
    of: whileOpen(({ unsealed }) => unsealed),
  },
  {
    name: 'attest_log_sealed_leaves',
    help: 'Leaves that the newest batch covers, with those before it',
    of: whileOpen(({ sealed }) => sealed),
  },
  {
    name: 'attest_log_unindexed_leaves',
    help: 'Leaves that the index of artifacts does not cover yet',
    of: whileOpen(({ unindexed }) => unindexed),
  },
  {
    name: 'attest_batches_unsettled',
    help: 'Sealed batches not yet witnessed, published or not',
    of: whileOpen(({ unsettled }) => unsettled),
  },
  {
    name: 'attest_batches_unpublished',
    help: 'Sealed batches whose root is not in the checkpoint register yet',
    of: whileOpen(({ unpublished }) => unpublished),
  },
  {
    name: 'attest_batches_oldest_unsettled_seconds',
    help: 'Age of the oldest sealed batch that is not yet witnessed',
    of: whileOpen(({ oldestSeconds }) => oldestSeconds),
  },
  {
    name: 'attest_log_last_published_seconds',
    help: 'How long ago the newest checkpoint was published; grows as well while nothing is submitted',
    of: whileOpen(({ publishedSeconds }) => publishedSeconds ?? undefined),
  },
  FROZEN,
];

/** The webhook backlog of the whole service. */
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

/** Adds the gauges of the pipeline, one value per log, and of webhooks. Reads each table once per scrape. */
export function addPipelineGauges(metrics: Metrics, pool: Pool): void {
  addLogGauges(metrics, pool, GAUGES);
  const webhookBacklog = shared(() => readWebhookBacklog(pool));
  for (const { name, help, of } of WEBHOOK_GAUGES) {
    metrics.addGauge({ name, help, read: async () => of(await webhookBacklog()) });
  }
}

/** Adds whether each log is frozen, for processes without the pipeline's gauges. */
export function addFrozenGauge(metrics: Metrics, pool: Pool): void {
  addLogGauges(metrics, pool, [FROZEN]);
}

function addLogGauges(metrics: Metrics, pool: Pool, gauges: readonly LogGauge[]): void {
  const backlogs = shared(() => readBacklogs(pool));
  for (const { name, help, of } of gauges) {
    metrics.addGauge({
      name,
      help,
      labelNames: ['log'],
      merge: 'max',
      read: async () =>
        (await backlogs()).flatMap((backlog) => {
          const value = of(backlog);
          return value === undefined ? [] : [{ labels: { log: backlog.origin }, value }];
        }),
    });
  }
}

/** Adds the gauge of the keys of logs, which a worker needs to seal them. */
export function addLogKeyGauge(metrics: Metrics, read: () => Promise<LogKeyState[]>): void {
  metrics.addGauge({
    name: 'attest_log_key_ready',
    help: '1 when this worker can sign the checkpoints of a log with its key of the algorithm, 0 when it lacks it',
    labelNames: ['log', 'algorithm'],
    read: async () =>
      (await read()).map(({ log, algorithm, problem }) => ({
        labels: { log: log.origin, algorithm },
        value: problem === undefined ? 1 : 0,
      })),
  });
}

/** Adds the gauge of the clock offset to the database; it has no value while the offset is unknown. */
export function addClockGauge(metrics: Metrics, offsetSeconds: () => number | undefined): void {
  metrics.addGauge({
    name: 'attest_clock_offset_seconds',
    help: "How far this machine's clock is ahead of the database's; beyond 5 either way no submission is taken",
    merge: 'first',
    read: () => offsetSeconds() ?? [],
  });
}

/** Shares one query among concurrent callers, so that scrapes of a silent database do not pile up. */
export function shared<T>(read: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<T> | undefined;
  return () => {
    underWay ??= read().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
}

/** Adds counters of this worker's webhook attempts by outcome. */
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
