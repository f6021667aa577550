/** Real processes, scraped in health and during faults: what rules and dashboard read is there, and the alerts fire. */
import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';
import { startLoad } from '../../support/calling/load.js';
import { setScene } from '../../support/fault-fixture.js';
import {
  disproveCases,
  disproveFiring,
  IDLE,
  type Scrapes,
  STORED,
  scrapeAll,
  scrapeUntil,
} from '../../support/judging/alerts.js';
import { startPrometheus } from '../../support/judging/prometheus.js';
import {
  alertNames,
  findMissing,
  panelExpressions,
  ruleExpressions,
} from '../../support/judging/shown-metrics.js';
import { until } from '../../support/until.js';
import { letWitnessesBeAsked, untilWitnessed } from '../../support/wait-for-idle.js';

const scene = await setScene(t, { env: { API_PROCESSES: '2', LOG_STORAGE: t.testdir() } });
const { installation, pool, servers, tsa, apiKey } = scene;
const worker = await installation.startWorker();
const api = await installation.startApi();
const prometheus = await startPrometheus(t, { api, worker });
const scrape = () => scrapeAll({ api, worker });

async function submit(): Promise<void> {
  const load = startLoad({ apis: () => [api.baseUrl], apiKey, clients: 2, most: 10 });
  await load.more(10);
  await load.stop();
}

const scrapeOnce = (...lines: RegExp[]) => scrapeUntil({ api, worker }, ...lines);
const get = (path: string) =>
  fetch(`${api.baseUrl}/v1/${path}`, { headers: { authorization: `Bearer ${apiKey}` } });

await submit();
await untilWitnessed(pool);
const { data } = (await (await get('attestations')).json()) as { data: { id: string }[] };
const read = async () => {
  for (const path of ['', '/bundle']) await get(`attestations/${data[0]?.id}${path}`);
  await get('attestations/sub_00000000000000000000000000');
};
await read();
const health = await scrapeOnce(/^attest_api_processes_ready 2/m, ...IDLE, STORED);

t.test('health fires nothing', async (t) => {
  t.equal(await disproveFiring({ before: health, during: health }, []), undefined);
});

/** Of `attest witness`, `attest signer` and `attest audit` alone. */
const BESIDE = [
  'attest_cosigned_tree_size',
  'attest_signer_requests_total',
  'attest_signer_seconds_total',
  'attest_signer_key_ready',
  'attest_audit_open_alarms',
];

t.test('what rules, dashboard and runbook name is scraped', async (t) => {
  const panels = (await panelExpressions()).map(({ expr }) => expr);
  const documented = [...readFileSync('docs/monitoring.md', 'utf8').matchAll(/`(attest_\w+)`/g)];
  const named = documented.map(([, name = '']) => name);
  for (const expr of [...(await ruleExpressions()), ...panels, ...named]) {
    const missing = findMissing(expr, health).filter((name) => !BESIDE.includes(name));
    t.strictSame(missing, [], expr);
  }
});

const DAY_SECONDS = 86_400;
const nowSeconds = Date.now() / 1000;
const TLS = 'attest_certificate_expiry_timestamp_seconds{certificate="witness foreign"}';
const LOG = '{log="live.log.example.com"}';

/** Of faults that the long run makes: the series that shows one, its value then, and what fires. */
const SHOWN: readonly [series: string, value: number, ...expected: string[]][] = [
  ['attest_database_standby_away', 1, 'AttestStandbyAway'],
  ['attest_clock_offset_seconds', -2, 'AttestClockDrifts'],
  ['attest_clock_offset_seconds', 7, 'AttestClockDrifts', 'AttestClockOff'],
  ['attest_api_processes_died_total', 9, 'AttestApiProcessDied'],
  ['attest_api_processes_ready', 1, 'AttestApiProcessMissing'],
  [TLS, nowSeconds + 10 * DAY_SECONDS, 'AttestCertificateExpires'],
  [TLS, nowSeconds + DAY_SECONDS, 'AttestCertificateExpires', 'AttestCertificateExpiresSoon'],
  [`attest_log_frozen${LOG}`, 1, 'AttestLogFrozen'],
  [`attest_log_unsealed_leaves${LOG}`, 5, 'AttestSealingStopped'],
  [
    'attest_log_key_ready{log="live.log.example.com",algorithm="ed25519"}',
    0,
    'AttestLogKeyMissing',
    'AttestLogKeyUnavailable',
  ],
  ['attest_webhooks_disabled_total', 2, 'AttestWebhookDisabled'],
];

/** The scrapes with another value of a series, which one of them has to have. */
function showing(scrapes: Scrapes, series: string, value: number): Scrapes {
  const line = `${series} ${value}`;
  const texts = Object.entries(scrapes);
  const owner = texts.find(([, text]) => text?.includes(`\n${series} `));
  if (owner === undefined) throw new Error(`no scrape has ${series}`);
  const [name, text = ''] = owner;
  const lines = text.split('\n').map((one) => (one.startsWith(`${series} `) ? line : one));
  return { ...scrapes, [name]: lines.join('\n') };
}

t.test('the value that shows a fault fires its alerts, and no others', async (t) => {
  const cases = SHOWN.map(([series, value, ...expected]) => ({
    before: health,
    during: showing(health, series, value),
    expected,
  }));
  t.equal(await disproveCases(cases), undefined);
});

/** The alerts of the tests below. */
const BELOW = [
  'AttestWitnessFailing',
  'AttestJetStreamDown',
  'AttestDatabaseDown',
  'AttestWorkerDown',
  'AttestProcessDown',
  'AttestApiDown',
];
const FOLDER = 'test/fault/alerts';
const RATES = 'test/generate/monitoring/burn-rates.test.ts';

t.test('every alert is fired by a fault of these files', async (t) => {
  const beside = readdirSync(FOLDER).filter((name) => name !== 'alerts.test.ts');
  const sources = [RATES, ...beside.map((name) => `${FOLDER}/${name}`)].map((file) =>
    readFileSync(file, 'utf8'),
  );
  const fired = sources.flatMap((text) => [...text.matchAll(/'(Attest\w+)'/g)].map(([, name = '']) => name));
  t.strictSame([...new Set([...BELOW, ...fired])].sort(), (await alertNames()).sort());
});

/** Prometheus scrapes twice a second; rates take two scrapes. */
const SOON_MS = 20_000;
/** Of what there is none in this scene. */
const EMPTY = [
  'attest_tuf_expiry_timestamp_seconds',
  'attest_pool_waiting',
  'attest_webhook_attempts_total',
  'attest_export_objects_total',
];

t.test('every panel of the dashboard has data', async (t) => {
  await submit();
  await read();
  await get('attestations');
  for (const { title, expr } of await panelExpressions()) {
    if (EMPTY.some((name) => expr.includes(name))) continue;
    await until(`${title} has data: ${expr}`, async () => (await prometheus.query(expr)).length > 0, SOON_MS);
  }
  t.strictSame(await prometheus.firing(), []);
});

t.test('a witness that fails', async (t) => {
  tsa.mood = 'fails';
  await submit();
  await until('it has failed five times', async () => {
    await letWitnessesBeAsked(pool);
    const [{ failures = 0 } = {}] = await pool`SELECT max(failures) AS failures FROM witness_state`;
    return failures >= 5;
  });
  const during = await scrapeOnce(/^attest_witness_consecutive_failures\{.*\} [5-9]/m, STORED);
  t.equal(await disproveFiring({ before: health, during }, ['AttestWitnessFailing']), undefined);
  tsa.mood = 'answers';
  await letWitnessesBeAsked(pool);
  await untilWitnessed(pool);
});

t.test('NATS is killed, and started again', async (t) => {
  await servers.nats.kill();
  const during = await scrapeOnce(/^attest_jetstream_up\{client="worker"\} 0/m);
  t.equal(await disproveFiring({ before: health, during }, ['AttestJetStreamDown']), undefined);
  await until('Prometheus has the alert', async () =>
    (await prometheus.firing()).includes('AttestJetStreamDown'),
  );
  await servers.nats.start();
  await until('it is over', async () => !(await prometheus.firing()).includes('AttestJetStreamDown'));
});

t.test('Postgres is stopped', async (t) => {
  await servers.postgres.stop();
  const during = await scrape();
  t.equal(await disproveFiring({ before: health, during }, ['AttestDatabaseDown']), undefined);
  await until('Prometheus has the alert', async () =>
    (await prometheus.firing()).includes('AttestDatabaseDown'),
  );
  await servers.postgres.start();
});

t.test('the worker is killed, then the API', async (t) => {
  await worker.kill();
  const without = ['AttestProcessDown', 'AttestWorkerDown'];
  t.equal(await disproveFiring({ before: health, during: await scrape() }, without), undefined);
  await until('Prometheus has the alert', async () =>
    (await prometheus.firing()).includes('AttestWorkerDown'),
  );
  await api.kill();
  t.equal(
    await disproveFiring({ before: health, during: await scrape() }, ['AttestApiDown', ...without]),
    undefined,
  );
});
