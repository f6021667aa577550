/** The service level objectives, for the Prometheus rules, the dashboard and the table of docs/monitoring.md. */
import type { Alert } from './alerts/alert.js';

export type Objective = {
  /** The label `slo` of its series. */
  slo: string;
  /** What counts as good, in words. */
  promise: string;
  /** The share that is good, over 30 days. */
  share: number;
  /** Selector of the counter of everything that counts. */
  total: string;
  /** That of what is bad, or of what is good. */
  part: { bad: string } | { good: string };
};

const CREATES =
  'AttestationService/(CreateAttestation|BatchCreateAttestations)|ScittService/RegisterStatement';
const READS =
  'AttestationService/(GetAttestation|ListAttestations|GetBundle|DownloadBundle)|BatchService/.*|ScittService/GetEntry';
const ONE_CREATE = 'AttestationService/CreateAttestation';
const ONE_READ = 'AttestationService/(GetAttestation|GetBundle|DownloadBundle)';

const answers = (rpcs: string) => ({
  total: `attest_requests_total{rpc=~"${rpcs}"}`,
  part: { bad: `attest_requests_total{rpc=~"${rpcs}",status=~"5.."}` },
});

const durations = (rpcs: string, seconds: string) => ({
  total: `attest_request_duration_seconds_count{rpc=~"${rpcs}"}`,
  part: { good: `attest_request_duration_seconds_bucket{rpc=~"${rpcs}",le="${seconds}"}` },
});

export const OBJECTIVES: readonly Objective[] = [
  { slo: 'create', promise: 'creates without a 5xx', share: 0.999, ...answers(CREATES) },
  { slo: 'create_latency', promise: 'creates within 0.5 s', share: 0.99, ...durations(ONE_CREATE, '0.5') },
  { slo: 'read', promise: 'reads, bundles and lists without a 5xx', share: 0.999, ...answers(READS) },
  {
    slo: 'read_latency',
    promise: 'reads and bundles within 0.25 s',
    share: 0.99,
    ...durations(ONE_READ, '0.25'),
  },
  {
    slo: 'witnessed',
    promise: 'batches of the live log witnessed within five minutes of their first submission',
    share: 0.99,
    total: 'attest_batch_settled_seconds_count{log=~"live.*"}',
    part: { good: 'attest_batch_settled_seconds_bucket{log=~"live.*",outcome="witnessed",le="300"}' },
  },
];

const ALERT_WINDOWS = ['5m', '30m', '1h', '2h', '6h', '1d', '3d'] as const;
type Window = (typeof ALERT_WINDOWS)[number] | '30d';
/** A burn is of this many bad events at least: one error of a quiet night wakes nobody. */
const FEWEST_BAD = 10;

/** A rule that records a series. */
type RecordingRule = { record: string; labels?: Record<string, string>; expr: string };

const rate = (selector: string, window: Window) => `sum by (job) (rate(${selector}[${window}]))`;

/** The rates of all and of bad events of an objective. Without series of bad, or good, ones `or` adds the zero. */
function rateRules({ slo, total, part }: Objective, window: Window): RecordingRule[] {
  const all = `attest:slo_total:rate${window}{slo="${slo}"}`;
  const orZero = (selector: string) => `${rate(selector, window)} or on (job) 0 * ${all}`;
  const bad = 'bad' in part ? orZero(part.bad) : `${all} - on (job) (${orZero(part.good)})`;
  return [
    { record: `attest:slo_total:rate${window}`, labels: { slo }, expr: rate(total, window) },
    { record: `attest:slo_bad:rate${window}`, labels: { slo }, expr: bad },
  ];
}

/** The share that is bad, of each objective; no value while there is nothing to count. */
function ratioRule(window: Window): RecordingRule {
  return {
    record: `attest:slo_errors:ratio_rate${window}`,
    expr: `attest:slo_bad:rate${window} / (attest:slo_total:rate${window} > 0)`,
  };
}

const rulesOf = (window: Window) => [
  ...OBJECTIVES.flatMap((objective) => rateRules(objective, window)),
  ratioRule(window),
];

/** The budget of each objective, and the rules of the windows that alerts or, with `month`, the dashboard reads. */
export function recordingRules(windows: 'alerts' | 'month'): RecordingRule[] {
  if (windows === 'month') return rulesOf('30d');
  const budgets = OBJECTIVES.map(({ slo, share }) => ({
    record: 'attest:slo_budget',
    labels: { slo },
    expr: `vector(${Number((1 - share).toFixed(6))})`,
  }));
  return [...budgets, ...ALERT_WINDOWS.flatMap(rulesOf)];
}

/** A pair of windows, and the multiple of the budget's even use beyond which both are. */
type Burn = { long: Window; short: Window; factor: number };

function burns(pairs: readonly Burn[], within: { window: Window; seconds: number }): string {
  const beyond = (window: Window, factor: number) =>
    `attest:slo_errors:ratio_rate${window} > on (slo) group_left () (${factor} * attest:slo_budget)`;
  const each = pairs.map(
    ({ long, short, factor }) => `(${beyond(long, factor)} and ${beyond(short, factor)})`,
  );
  const enough = `attest:slo_bad:rate${within.window} * ${within.seconds} >= ${FEWEST_BAD}`;
  return `(${each.join(' or ')}) and ${enough}`;
}

const FIND_CAUSE =
  '`create`, `read`: `/readyz` names the reason (Postgres, a frozen log, limits). Latency: Postgres, or more API processes. ' +
  '`witnessed`: [a failing witness](#a-failing-witness)';

/** Windows and factors are those of chapter 5 of the Site Reliability Workbook. */
export const BURN_ALERTS: readonly Alert[] = [
  {
    name: 'AttestErrorBudgetBurnsFast',
    expr: burns(
      [
        { long: '1h', short: '5m', factor: 14.4 },
        { long: '6h', short: '30m', factor: 6 },
      ],
      { window: '6h', seconds: 21_600 },
    ),
    severity: 'page',
    summary: 'an objective (`slo`) loses 2 % of its monthly error budget in an hour, or 5 % in six',
    action: FIND_CAUSE,
  },
  {
    name: 'AttestErrorBudgetBurnsSlowly',
    expr: burns(
      [
        { long: '1d', short: '2h', factor: 3 },
        { long: '3d', short: '6h', factor: 1 },
      ],
      { window: '3d', seconds: 259_200 },
    ),
    severity: 'ticket',
    summary: 'an objective (`slo`) loses 10 % of its monthly error budget in a day, or in three',
    action: FIND_CAUSE,
  },
];
