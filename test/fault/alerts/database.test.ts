/** A table that an operator's statement locks, as `CREATE INDEX` does, and the alerts about what waits for the database. */
import t from 'tap';
import { newCreation, send } from '../../support/calling/load.js';
import { disproveFiring, IDLE, scrapeUntil } from '../../support/judging/alerts.js';
import { makeInstallation, makeUnlimitedKey } from '../../support/servers/installation.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';

const installation = await makeInstallation(t, {
  env: { PG_POOL: '2', ALLOW_INSECURE_DESTINATIONS: 'true' },
});
const pool = installation.openPool();
const apiKey = await makeUnlimitedKey(pool);
const worker = await installation.startWorker();
const api = await installation.startApi();
const scrapeOnce = (...lines: RegExp[]) => scrapeUntil({ api, worker }, ...lines);

const WAITING = /^attest_pool_waiting\{.*\} [1-9]/m;

const submit = () => send(api.baseUrl, apiKey, newCreation());

async function post(path: string, body: object): Promise<number> {
  const answer = await fetch(`${api.baseUrl}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  await answer.text();
  return answer.status;
}

/** Nothing is written to the table while it runs; reads go on. */
async function whileLocked(table: string, run: () => Promise<void>): Promise<void> {
  await pool.begin(async (tx) => {
    await tx`SET LOCAL idle_in_transaction_session_timeout = 0`;
    await tx.unsafe(`LOCK TABLE ${table} IN SHARE MODE`);
    await run();
  });
}

await submit();
await untilWitnessed(pool);
const health = await until('nothing waits for a connection', async () => {
  const scrapes = await scrapeOnce(...IDLE);
  return Object.values(scrapes).every((text = '') => !WAITING.test(text)) && scrapes;
});

t.test('health fires nothing', async (t) => {
  t.equal(await disproveFiring({ before: health, during: health }, []), undefined);
});

t.test('transactions wait for a connection', async (t) => {
  const webhook = { url: 'http://127.0.0.1:9/', events: ['attestation.witnessed'] };
  const waiting: Promise<number>[] = [];
  await whileLocked('webhook', async () => {
    waiting.push(...Array.from({ length: 6 }, () => post('webhooks', webhook)));
    const during = await scrapeOnce(/^attest_pool_waiting\{pool="api"\} [1-9]/m);
    t.equal(await disproveFiring({ before: health, during }, ['AttestPoolExhausted']), undefined);
  });
  await Promise.all(waiting);
});

t.test('submissions wait for the write in progress', async (t) => {
  const items = () =>
    Array.from({ length: 250 }, () => ({
      artifact: { sha256: newCreation().artifactSha256 },
      metadata: { schema: 'purl', purl: 'pkg:npm/a-test@1.0.0' },
    }));
  const waiting: Promise<number>[] = [];
  await whileLocked('submission', async () => {
    waiting.push(...Array.from({ length: 12 }, () => post('attestations:batch', { items: items() })));
    const during = await scrapeOnce(/^attest_accept_queued_submissions (?:1[1-9]|[2-9]\d)\d\d$/m);
    t.equal(await disproveFiring({ before: health, during }, ['AttestWritesQueue']), undefined);
  });
  await Promise.all(waiting);
});
