/**
 * Which alerts of the shipped rules fire, by `promtool test rules` over real scrapes: what /metrics showed in health for an
 * hour, then what it showed during a fault for two.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PROMTOOL } from '../foreign/promtool.js';
import { until } from '../until.js';

/** The shipped rules. */
export const RULES = resolve('deploy/prometheus/attest.rules.yaml');
const BEFORE_MINUTES = 60;
const DURING_MINUTES = 120;
const END_MINUTES = BEFORE_MINUTES + DURING_MINUTES;

/** The text of `/metrics` by the name of the process; undefined if the process does not answer. */
export type Scrapes = Readonly<Record<string, string | undefined>>;
/** A series of promtool's tests. */
export type Series = { series: string; values: string };

/** Scrapes processes by the addresses of their ops listeners. */
export async function scrapeAll(processes: Readonly<Record<string, { opsUrl: string }>>): Promise<Scrapes> {
  const scraped = Object.entries(processes).map(async ([name, { opsUrl }]) => {
    const text = await fetch(`${opsUrl}/metrics`).then(
      (answer) => answer.text(),
      () => undefined,
    );
    return [name, text] as const;
  });
  return Object.fromEntries(await Promise.all(scraped));
}

/** The lines of a worker that has nothing to do: the live log is sealed and published. */
export const IDLE = ['attest_log_unsealed_leaves', 'attest_batches_unpublished'].map(
  (name) => new RegExp(`^${name}\\{log="live\\.log\\.example\\.com"\\} 0$`, 'm'),
);

/** Of a worker that has written all that is sealed to LOG_STORAGE. */
export const STORED =
  /^attest_log_sealed_leaves\{log="live\.log\.example\.com"\} (\d+)$[\s\S]*^attest_log_stored_size\{log="live\.log\.example\.com"\} \1$/m;

/** The scrapes once each of the lines is in one of them. */
export function scrapeUntil(
  processes: Readonly<Record<string, { opsUrl: string }>>,
  ...lines: readonly RegExp[]
): Promise<Scrapes> {
  return until(`there is ${lines.join(', ')}`, async () => {
    const scrapes = await scrapeAll(processes);
    const texts = Object.values(scrapes);
    return lines.every((line) => texts.some((text = '') => line.test(text))) && scrapes;
  });
}

/** Scrapes before and during a fault, and the names of the alerts that fire at its end, no others. */
export type Case = { before: Scrapes; during: Scrapes; expected: readonly string[] };

/** What promtool says against exactly these alerts firing at the end; undefined if they do. */
export function disproveFiring(
  scrapes: { before: Scrapes; during: Scrapes },
  expected: readonly string[],
): Promise<string | undefined> {
  return disproveCases([{ ...scrapes, expected }]);
}

/** The same of several cases, in one run of promtool. */
export function disproveCases(cases: readonly Case[]): Promise<string | undefined> {
  const tests = cases.map((one) => testOf({ series: toSeries(one), minutes: END_MINUTES }, one.expected));
  return runTests(tests, '5m');
}

/** The same, of series that a test made, at a minute; the rules are evaluated `every` so often. */
export function disprove(
  { every, ...made }: { series: readonly Series[]; minutes: number; every: string },
  expected: readonly string[],
): Promise<string | undefined> {
  return runTests([testOf(made, expected)], every);
}

function testOf(
  { series, minutes }: { series: readonly Series[]; minutes: number },
  expected: readonly string[],
) {
  const firing = {
    expr: 'group by (alertname) (ALERTS{alertstate="firing"})',
    eval_time: `${minutes}m`,
    exp_samples: [...expected].sort().map((name) => ({ labels: `{alertname="${name}"}`, value: 1 })),
  };
  const name = expected.join(', ');
  return { name, interval: '1m', input_series: series, promql_expr_test: [firing] };
}

async function runTests(tests: readonly object[], every: string): Promise<string | undefined> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-alerts-'));
  try {
    const file = join(dir, 'test.yaml');
    // JSON is YAML.
    await writeFile(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: every, tests }));
    return await new Promise((done) => {
      execFile(PROMTOOL, ['test', 'rules', file], (error, stdout, stderr) =>
        done(error === null ? undefined : `${stdout}${stderr}`),
      );
    });
  } finally {
    await rm(dir, { recursive: true });
  }
}

/**
 * The scrapes as series: gauges jump when the fault begins, what counts grows evenly from then on. Times become relative to
 * promtool's clock, which begins at 0 and ends at the end of the fault.
 */
function toSeries({ before, during }: { before: Scrapes; during: Scrapes }): Series[] {
  const shift = Date.now() / 1000 - END_MINUTES * 60;
  return [...new Set([...Object.keys(before), ...Object.keys(during)])].flatMap((instance) => {
    const [healthy, faulty] = [read(before[instance]), read(during[instance])];
    const names = new Set([...healthy.keys(), ...faulty.keys()]);
    const scraped = [...names].map((name) => {
      const isTime = /_timestamp_seconds\b/.test(name);
      const at = (value: number | undefined) =>
        value === undefined ? undefined : isTime ? value - shift : value;
      return {
        series: withInstance(name, instance),
        values: toValues(at(healthy.get(name)), at(faulty.get(name)), counts(name)),
      };
    });
    const up = toValues(before[instance] && 1, during[instance] === undefined ? 0 : 1, false);
    return [...scraped, { series: withInstance('up', instance), values: up }];
  });
}

/** The samples of a scrape by series. */
function read(scrape = ''): Map<string, number> {
  const lines = scrape.split('\n').filter((line) => line.startsWith('attest_'));
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(' ');
      return [line.slice(0, end), Number(line.slice(end + 1))];
    }),
  );
}

function counts(name: string): boolean {
  return /^\w+_(?:total|count|sum|bucket)\b/.test(name);
}

function withInstance(name: string, instance: string): string {
  const labels = `job="attest",instance="${instance}"`;
  return name.endsWith('}') ? `${name.slice(0, -1)},${labels}}` : `${name}{${labels}}`;
}

/** A scrape a minute in promtool's notation: `a+bxn` is `a` and `n` more. */
function toValues(healthy: number | '' | undefined, faulty: number | undefined, isCounter: boolean): string {
  const first = typeof healthy === 'number' ? `${healthy}+0x${BEFORE_MINUTES - 1}` : `_x${BEFORE_MINUTES}`;
  if (faulty === undefined) return `${first} stale`;
  const from = isCounter && typeof healthy === 'number' ? healthy : faulty;
  const step = (faulty - from) / DURING_MINUTES;
  return `${first} ${from}${step < 0 ? '' : '+'}${step}x${DURING_MINUTES}`;
}
