/** The alerts about objectives: how bad it is for how long before one fires. */
import t from 'tap';
import { disprove, type Series } from '../../support/judging/alerts.js';

const HOUR = 60;
const FAST = 'AttestErrorBudgetBurnsFast';
const SLOW = 'AttestErrorBudgetBurnsSlowly';
/** Of a service in which nothing else is wrong. */
const QUIET: readonly Series[] = [
  { series: 'attest_accept_queued_submissions', values: '0x2000' },
  { series: 'attest_export_spool_bytes', values: '0x2000' },
  { series: 'attest_log_frozen', values: '0x2000' },
];

/** A stretch of minutes with so many good and bad events each. */
type Stretch = { minutes: number; good: number; bad: number };

/** The counters of an objective: of everything that counts, and of its part. */
type Counters = { all: string; part: string; counted: 'good' | 'bad' };

const CREATE = 'rpc="AttestationService/CreateAttestation",surface="rest"';
const READ = 'rpc="AttestationService/GetBundle",surface="rest"';
const answers = (of: string): Counters => ({
  all: `attest_requests_total{${of},status="201"}`,
  part: `attest_requests_total{${of},status="503"}`,
  counted: 'bad',
});
const durations = (of: string, le: string): Counters => ({
  all: `attest_request_duration_seconds_count{${of}}`,
  part: `attest_request_duration_seconds_bucket{${of},le="${le}"}`,
  counted: 'good',
});
const SETTLED = 'log="live.log.example.com",outcome="witnessed"';
const OBJECTIVES: Readonly<Record<string, Counters>> = {
  create: answers(CREATE),
  create_latency: durations(CREATE, '0.5'),
  read: answers(READ),
  read_latency: durations(READ, '0.25'),
  witnessed: {
    all: `attest_batch_settled_seconds_count{${SETTLED}}`,
    part: `attest_batch_settled_seconds_bucket{${SETTLED},le="300"}`,
    counted: 'good',
  },
};

/** A counter over all stretches, by what it counts a minute. */
function counter(stretches: readonly Stretch[], perMinute: (stretch: Stretch) => number): string {
  let value = 0;
  const parts = stretches.map((stretch) => {
    const step = perMinute(stretch);
    const part = `${value}+${step}x${stretch.minutes - 1}`;
    value += step * stretch.minutes;
    return part;
  });
  return parts.join(' ');
}

/** What promtool says against these alerts at the end of the stretches, which last for half hours and a minute. */
function judge(
  { all, part, counted }: Counters,
  stretches: readonly Stretch[],
  expected: readonly string[],
): Promise<string | undefined> {
  // Answers are a series per status, durations one of all.
  const ofAll = (stretch: Stretch) => (counted === 'bad' ? stretch.good : stretch.good + stretch.bad);
  const series = [
    ...QUIET,
    { series: all, values: counter(stretches, ofAll) },
    { series: part, values: counter(stretches, (stretch) => stretch[counted]) },
  ];
  const minutes = stretches.reduce((sum, stretch) => sum + stretch.minutes, -1);
  return disprove({ series, minutes, every: '30m' }, expected);
}

const HEALTHY: Stretch = { minutes: 12 * HOUR + 1, good: 10_000, bad: 0 };

for (const [slo, counters] of Object.entries(OBJECTIVES)) {
  t.test(`${slo}: half of everything is bad for half an hour`, async (t) => {
    const fault = { minutes: HOUR / 2, good: 5_000, bad: 5_000 };
    t.equal(await judge(counters, [HEALTHY, fault], [FAST, SLOW]), undefined);
    const over = { minutes: HOUR, good: 10_000, bad: 0 };
    t.equal(await judge(counters, [HEALTHY, fault, over], [SLOW]), undefined, 'an hour later');
  });
}

const CREATES = OBJECTIVES.create!;

t.test('2 % bad for an hour pages, 0.5 % for half a day is a ticket', async (t) => {
  const hour = { minutes: HOUR, good: 9_800, bad: 200 };
  t.equal(await judge(CREATES, [{ ...HEALTHY, minutes: 24 * HOUR + 1 }, hour], [FAST]), undefined);
  const day = { minutes: 12 * HOUR, good: 9_950, bad: 50 };
  t.equal(await judge(CREATES, [HEALTHY, day], [SLOW]), undefined);
});

t.test('what the budget allows fires nothing, nor do a few errors of a quiet night', async (t) => {
  t.equal(await judge(CREATES, [{ minutes: 13 * HOUR + 1, good: 9_995, bad: 5 }], []), undefined);
  const night = { minutes: 12 * HOUR + 1, good: 1, bad: 0 };
  t.equal(await judge(CREATES, [night, { minutes: HOUR / 2, good: 0.8, bad: 0.2 }], []), undefined);
});
