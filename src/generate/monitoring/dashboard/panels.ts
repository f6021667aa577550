/** The panels of the Grafana dashboard. `$of` stands for the processes that are chosen. */

/** A query of a panel, and the name of its lines. */
type Query = readonly [expr: string, legend: string];
/** `unit` is Grafana's name of it. A figure has no axis of time. */
export type PanelOf = { title: string; unit: string; isFigure?: true; queries: readonly Query[] };

/** The label matchers that the variables `job` and `instance` of the dashboard fill in. */
export const CHOSEN = 'job=~"$job",instance=~"$instance"';

const perSecond = (metric: string, labels = '') =>
  `rate(${metric}{${labels === '' ? CHOSEN : `${labels},${CHOSEN}`}}[$__rate_interval])`;
const quantile = (share: number, metric: string, labels: string, by: string) =>
  `histogram_quantile(${share}, sum by (${by}) (${perSecond(`${metric}_bucket`, labels)}))`;
const duration = (share: number, rpc: string) =>
  quantile(share, 'attest_request_duration_seconds', `rpc="AttestationService/${rpc}"`, 'le');
const settled = (share: number) =>
  quantile(share, 'attest_batch_settled_seconds', 'outcome="witnessed"', 'le, log');
/** A gauge that every process of its kind shows alike. */
const most = (metric: string, by: string) => `max by (${by}) (${metric}{${CHOSEN}})`;

const OBJECTIVES: readonly PanelOf[] = [
  {
    title: 'Kept, 30 days',
    unit: 'percentunit',
    isFigure: true,
    queries: [['1 - attest:slo_errors:ratio_rate30d{job=~"$job"}', '{{slo}}']],
  },
  {
    title: 'Error budget left, 30 days',
    unit: 'percentunit',
    isFigure: true,
    queries: [
      [
        '1 - attest:slo_errors:ratio_rate30d{job=~"$job"} / on (slo) group_left () attest:slo_budget',
        '{{slo}}',
      ],
    ],
  },
  {
    title: 'Burn rate, one hour',
    unit: 'none',
    queries: [
      ['attest:slo_errors:ratio_rate1h{job=~"$job"} / on (slo) group_left () attest:slo_budget', '{{slo}}'],
    ],
  },
  {
    title: 'Alerts',
    unit: 'none',
    queries: [
      [
        'count by (alertname, severity) (ALERTS{alertname=~"Attest.*",alertstate="firing"}) or vector(0)',
        '{{severity}} {{alertname}}',
      ],
    ],
  },
];

const API: readonly PanelOf[] = [
  {
    title: 'Requests',
    unit: 'reqps',
    queries: [[`sum by (rpc) (${perSecond('attest_requests_total')})`, '{{rpc}}']],
  },
  {
    title: 'Errors',
    unit: 'reqps',
    queries: [
      [
        `sum by (rpc, status) (${perSecond('attest_requests_total', 'status=~"4..|5.."')})`,
        '{{rpc}} {{status}}',
      ],
    ],
  },
  {
    title: 'Duration of creates',
    unit: 's',
    queries: [
      [duration(0.5, 'CreateAttestation'), 'p50'],
      [duration(0.99, 'CreateAttestation'), 'p99'],
    ],
  },
  {
    title: 'Duration of reads',
    unit: 's',
    queries: [
      [duration(0.99, 'GetAttestation'), 'attestation p99'],
      [duration(0.99, 'GetBundle'), 'bundle p99'],
      [duration(0.99, 'ListAttestations'), 'list p99'],
    ],
  },
  {
    title: 'Submissions that wait for the write',
    unit: 'short',
    queries: [[`attest_accept_queued_submissions{${CHOSEN}}`, '{{instance}}']],
  },
];

const LOGS: readonly PanelOf[] = [
  {
    title: 'Time to witnessed',
    unit: 's',
    queries: [
      [settled(0.5), '{{log}} p50'],
      [settled(0.99), '{{log}} p99'],
    ],
  },
  {
    title: 'Batches settled',
    unit: 'ops',
    queries: [
      [`sum by (log, outcome) (${perSecond('attest_batch_settled_seconds_count')})`, '{{log}} {{outcome}}'],
    ],
  },
  {
    title: 'Leaves',
    unit: 'short',
    queries: [
      [most('attest_log_sealed_leaves', 'log'), '{{log}} sealed'],
      [most('attest_log_unsealed_leaves', 'log'), '{{log}} unsealed'],
      [most('attest_log_unindexed_leaves', 'log'), '{{log}} not in the index'],
      [most('attest_log_stored_size', 'log'), '{{log}} in LOG_STORAGE'],
    ],
  },
  {
    title: 'Batches that wait',
    unit: 'short',
    queries: [
      [most('attest_batches_unsettled', 'log'), '{{log}} for witnesses'],
      [most('attest_batches_unpublished', 'log'), '{{log}} for the register'],
    ],
  },
  {
    title: 'Ages',
    unit: 's',
    queries: [
      [most('attest_batches_oldest_unsettled_seconds', 'log'), '{{log}} oldest unsettled batch'],
      [most('attest_log_last_published_seconds', 'log'), '{{log}} newest checkpoint'],
    ],
  },
  {
    title: 'Frozen; keys at hand',
    unit: 'bool_yes_no',
    queries: [
      [most('attest_log_frozen', 'log'), '{{log}} frozen'],
      [`min by (log, algorithm) (attest_log_key_ready{${CHOSEN}})`, '{{log}} key {{algorithm}}'],
    ],
  },
];

/** The rows of the first half, by their titles. */
export const PIPELINE_ROWS: Readonly<Record<string, readonly PanelOf[]>> = {
  Objectives: OBJECTIVES,
  API,
  'Log and batches': LOGS,
};
