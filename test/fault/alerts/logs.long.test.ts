/** A log that cannot be signed, an endpoint that has gone, and a log that is frozen, and the alerts that they fire. */
import { generateKeyPairSync } from 'node:crypto';
import t from 'tap';
import { setEarlierEntry } from '../../support/breaking/register.js';
import { newCreation, send } from '../../support/calling/load.js';
import { makeServerTls } from '../../support/certificates/server-tls.js';
import { setScene } from '../../support/fault-fixture.js';
import { disproveFiring, IDLE, scrapeAll, scrapeUntil } from '../../support/judging/alerts.js';
import { startSigningProcess } from '../../support/servers/signing-process.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';
import { answering, startReceiver } from '../../support/webhooks/receiver.js';

const ORIGIN = 'live.log.example.com';
const { tls, caFile } = await makeServerTls(t);
const { installation, pool, apiKey } = await setScene(t, {
  env: { ALLOW_INSECURE_DESTINATIONS: 'true', NODE_EXTRA_CA_CERTS: caFile },
});
const signer = await startSigningProcess(t, {
  log: generateKeyPairSync('ed25519').privateKey,
  'log/receipt': generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
});
const { LOG_KEY_FILE = '' } = installation.env;
const testKey = LOG_KEY_FILE.slice(LOG_KEY_FILE.indexOf('test='));
installation.env.LOG_KEY_FILE = `live=${signer.setting('log')},${testKey}`;
const worker = await installation.startWorker();
const api = await installation.startApi();

const submit = () => send(api.baseUrl, apiKey, newCreation());
const scrapeOnce = (...lines: RegExp[]) => scrapeUntil({ api, worker }, ...lines);

await submit();
await untilWitnessed(pool);
const health = await scrapeOnce(...IDLE);

t.test('health fires nothing', async (t) => {
  t.equal(await disproveFiring({ before: health, during: health }, []), undefined);
});

t.test('the signing process is stopped', async (t) => {
  await signer.stop();
  await submit();
  const during = await scrapeOnce(
    /^attest_log_unsealed_leaves\{log="live\.log\.example\.com"\} 1/m,
    /^attest_log_key_ready\{log="live\.log\.example\.com",algorithm="ed25519"\} 0/m,
  );
  t.equal(
    await disproveFiring({ before: health, during }, [
      'AttestLogKeyMissing',
      'AttestLogKeyUnavailable',
      'AttestSealingStopped',
    ]),
    undefined,
  );
  await signer.start();
  await untilWitnessed(pool);
});

t.test('an endpoint of webhooks has gone', async (t) => {
  const receiver = await startReceiver(t, { tls });
  receiver.behave(answering(410));
  const answer = await fetch(`${api.baseUrl}/v1/webhooks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: receiver.url, events: ['attestation.witnessed'] }),
  });
  receiver.trust(((await answer.json()) as { secret: string }).secret);
  await submit();
  await untilWitnessed(pool);
  const during = await scrapeOnce(/^attest_webhooks_disabled_total 1/m);
  t.equal(await disproveFiring({ before: health, during }, ['AttestWebhookDisabled']), undefined);
});

t.test('the register has another history', async (t) => {
  const before = await scrapeAll({ api, worker });
  setEarlierEntry(installation.register, ORIGIN, 100, '0'.repeat(64));
  await submit();
  const during = await scrapeOnce(/^attest_log_frozen\{log="live\.log\.example\.com"\} 1/m);
  t.equal(await disproveFiring({ before, during }, ['AttestLogFrozen']), undefined);
});
