import { CHOSEN, type PanelOf } from './panels.js';

const each = (metric: string, legend: string): readonly [string, string] => [`${metric}{${CHOSEN}}`, legend];
const ofWitness = (metric: string): readonly [string, string] => [
  `max by (log, witness) (${metric}{${CHOSEN}})`,
  '{{witness}} {{log}}',
];
/** A figure of the whole service, which every worker shows alike. */
const ofAll = (metric: string, legend: string): readonly [string, string] => [
  `max by (job) (${metric}{${CHOSEN}})`,
  legend,
];
const increase = (metric: string) => `increase(${metric}{${CHOSEN}}[$__rate_interval])`;

const WITNESSES: readonly PanelOf[] = [
  { title: 'Failures in a row', unit: 'short', queries: [ofWitness('attest_witness_consecutive_failures')] },
  {
    title: 'Since the last success',
    unit: 's',
    queries: [
      [
        `time() - max by (log, witness) (attest_witness_last_success_timestamp_seconds{${CHOSEN}})`,
        '{{witness}} {{log}}',
      ],
    ],
  },
  { title: 'Leaves behind', unit: 'short', queries: [ofWitness('attest_witness_leaves_behind')] },
  { title: 'Pending requests', unit: 'short', queries: [ofWitness('attest_witness_pending_requests')] },
  {
    title: 'Alarms',
    unit: 'short',
    queries: [[`sum by (witness) (${increase('attest_witness_alarms_total')})`, '{{witness}}']],
  },
];

const WEBHOOKS: readonly PanelOf[] = [
  { title: 'Deliveries due', unit: 'short', queries: [ofAll('attest_webhook_deliveries_due', 'due')] },
  { title: 'Oldest due', unit: 's', queries: [ofAll('attest_webhook_oldest_due_seconds', 'oldest')] },
  {
    title: 'Attempts; subscriptions disabled',
    unit: 'short',
    queries: [
      [`sum by (outcome) (${increase('attest_webhook_attempts_total')})`, '{{outcome}}'],
      [`sum(${increase('attest_webhooks_disabled_total')})`, 'disabled'],
    ],
  },
];

const EXPORTS: readonly PanelOf[] = [
  {
    title: 'Exports',
    unit: 'short',
    queries: [
      ofAll('attest_exports_active', 'active'),
      ofAll('attest_exports_failing', 'failing'),
      ofAll('attest_export_failures_in_a_row', 'most failures in a row'),
    ],
  },
  {
    title: 'Lag',
    unit: 's',
    queries: [ofAll('attest_export_lag_seconds', 'oldest')],
  },
  { title: 'Batches not shipped', unit: 'short', queries: [ofAll('attest_export_lag_batches', 'batches')] },
  {
    title: 'Objects',
    unit: 'short',
    queries: [[`sum by (outcome) (${increase('attest_export_objects_total')})`, '{{outcome}}']],
  },
  {
    title: 'Bytes shipped; temporary files',
    unit: 'bytes',
    queries: [
      [`sum(${increase('attest_export_shipped_bytes_total')})`, 'shipped'],
      each('attest_export_spool_bytes', '{{instance}} temporary'),
    ],
  },
];

const SERVERS: readonly PanelOf[] = [
  {
    title: 'Postgres connections',
    unit: 'short',
    queries: [
      [`sum by (instance, pool) (attest_pool_connections_in_use{${CHOSEN}})`, '{{instance}} {{pool}} in use'],
      [`sum by (instance, pool) (attest_pool_waiting{${CHOSEN}}) > 0`, '{{instance}} {{pool}} waiting'],
    ],
  },
  {
    title: 'Synchronous standby away',
    unit: 'bool_yes_no',
    queries: [ofAll('attest_database_standby_away', 'away')],
  },
  {
    title: 'NATS connected, JetStream up',
    unit: 'bool_yes_no',
    queries: [
      each('attest_nats_connected', '{{instance}} {{client}} connected'),
      each('attest_jetstream_up', '{{instance}} {{client}} JetStream'),
    ],
  },
  { title: 'Clock offset', unit: 's', queries: [each('attest_clock_offset_seconds', '{{instance}}')] },
];

const PROCESSES: readonly PanelOf[] = [
  { title: 'Up', unit: 'bool_yes_no', queries: [each('up', '{{instance}}')] },
  {
    title: 'API processes; ended by themselves',
    unit: 'short',
    queries: [
      each('attest_api_processes_ready', '{{instance}} ready'),
      [increase('attest_api_processes_died_total'), '{{instance}} died'],
    ],
  },
  { title: 'Memory', unit: 'bytes', queries: [each('process_resident_memory_bytes', '{{instance}}')] },
  {
    title: 'CPU',
    unit: 'percentunit',
    queries: [[`rate(process_cpu_seconds_total{${CHOSEN}}[$__rate_interval])`, '{{instance}}']],
  },
  {
    title: 'Event loop lag, p99',
    unit: 's',
    queries: [each('nodejs_eventloop_lag_p99_seconds', '{{instance}}')],
  },
  {
    title: 'Until expiry',
    unit: 's',
    queries: [
      [
        `min by (certificate) (attest_certificate_expiry_timestamp_seconds{${CHOSEN}}) - time()`,
        '{{certificate}}',
      ],
      [`min by (role) (attest_tuf_expiry_timestamp_seconds{${CHOSEN}}) - time()`, 'TUF {{role}}'],
    ],
  },
  {
    title: 'Versions',
    unit: 'short',
    isFigure: true,
    queries: [[`count by (version, node) (attest_build_info{${CHOSEN}})`, '{{version}}, Node {{node}}']],
  },
];

/** The rows of the second half, by their titles. */
export const OUTER_ROWS: Readonly<Record<string, readonly PanelOf[]>> = {
  Witnesses: WITNESSES,
  Webhooks: WEBHOOKS,
  Exports: EXPORTS,
  'Postgres and NATS': SERVERS,
  Processes: PROCESSES,
};
