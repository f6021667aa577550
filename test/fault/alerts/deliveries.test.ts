/** Webhooks and exports whose destinations are silent or have gone, and the alerts that they fire. */
import t from 'tap';
import { newCreation, send } from '../../support/calling/load.js';
import { makeServerTls } from '../../support/certificates/server-tls.js';
import { BUCKET, OWNER, startStore } from '../../support/exports/s3/fixture.js';
import { disproveFiring, IDLE, scrapeUntil } from '../../support/judging/alerts.js';
import { makeInstallation, makeUnlimitedKey } from '../../support/servers/installation.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';
import { startReceiver } from '../../support/webhooks/receiver.js';

const { tls, caFile } = await makeServerTls(t);
const installation = await makeInstallation(t, {
  env: { ALLOW_INSECURE_DESTINATIONS: 'true', NODE_EXTRA_CA_CERTS: caFile },
});
const pool = installation.openPool();
const apiKey = await makeUnlimitedKey(pool);
const worker = await installation.startWorker();
const api = await installation.startApi();
const scrapeOnce = (...lines: RegExp[]) => scrapeUntil({ api, worker }, ...lines);

async function post(path: string, body: object): Promise<{ secret: string }> {
  const answer = await fetch(`${api.baseUrl}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(await answer.text());
  return (await answer.json()) as { secret: string };
}

async function submit(count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => send(api.baseUrl, apiKey, newCreation())));
  await untilWitnessed(pool);
}

const store = await startStore(t);
const { accessKeyId: access_key_id, secretAccessKey: secret_access_key } = OWNER;
const bucket = { kind: 's3', bucket: BUCKET, endpoint: store.url, access_key_id, secret_access_key };
await post('exports', { destination: { ...bucket, prefix: 'copies' } });
await submit(1);
const shipped = [/^attest_export_objects_total\{outcome="\w+"\} [1-9]/m, /^attest_export_lag_batches 0$/m];
const health = await scrapeOnce(...IDLE, ...shipped);

t.test('health fires nothing', async (t) => {
  t.equal(await disproveFiring({ before: health, during: health }, []), undefined);
});

t.test('an endpoint of webhooks does not answer', async (t) => {
  const receiver = await startReceiver(t, { tls });
  receiver.behave(() => {});
  receiver.trust((await post('webhooks', { url: receiver.url, events: ['attestation.witnessed'] })).secret);
  await submit(40);
  await until('it was asked', () => receiver.open.now > 0);
  const during = await until('the events are late, and due', async () => {
    await pool`UPDATE webhook_range SET created_at = clock_timestamp() - interval '11 minutes'`;
    const scrapes = await scrapeOnce(...IDLE);
    return /^attest_webhook_oldest_due_seconds 6[6-9]\d/m.test(scrapes.worker ?? '') && scrapes;
  });
  t.equal(await disproveFiring({ before: health, during }, ['AttestWebhooksLate']), undefined);
  await pool`DELETE FROM webhook_range`;
});

t.test('the destination of an export has gone', async (t) => {
  const before = await scrapeOnce(...IDLE, /^attest_webhook_oldest_due_seconds 0$/m, ...shipped);
  await store.goAway();
  await submit(1);
  await scrapeOnce(/^attest_export_failures_in_a_row [1-9]/m);
  await pool`UPDATE batch SET sealed_at = sealed_at - interval '61 minutes'`;
  const late = await scrapeOnce(...IDLE, /^attest_export_lag_seconds 36/m);
  t.equal(await disproveFiring({ before, during: late }, ['AttestExportsLate']), undefined);

  await pool`UPDATE batch SET sealed_at = sealed_at + interval '61 minutes'`;
  await pool`UPDATE export SET failing_since = failing_since - interval '25 hours', due_at = clock_timestamp()`;
  const failing = await scrapeOnce(...IDLE, /^attest_exports_failing 1$/m);
  t.equal(await disproveFiring({ before, during: failing }, ['AttestExportFailing']), undefined);
});
