import type { Metrics } from '../metrics.js';
import type { Pool } from '../store/connect.js';
import { type Backlog, readBacklogs } from '../store/due.js';

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

/** Adds the pipeline's gauges, one value per log. */
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
}
