/** Clocks, certificates and API processes that fail, and the alerts that they fire. */
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { installClock, letPass } from '../../support/breaking/database-clock.js';
import { makeServerTls } from '../../support/certificates/server-tls.js';
import { disproveFiring, scrapeAll, scrapeUntil } from '../../support/judging/alerts.js';
import { makeInstallation } from '../../support/servers/installation.js';

const installation = await makeInstallation(t);
await installClock(installation.databaseUrl);
const pool = installation.openPool();
const dir = t.testdir({});
const certificate = join(dir, 'tls.pem');

async function useCertificate(days: number): Promise<void> {
  const { tls } = await makeServerTls(t, 'IP:127.0.0.1', days);
  writeFileSync(join(dir, `${days}.pem`), tls.cert);
  writeFileSync(join(dir, 'key.pem'), tls.key);
  copyFileSync(join(dir, `${days}.pem`), certificate);
}

await useCertificate(30);
const worker = await installation.startWorker();
const plain = await installation.startApi();
installation.env.TLS_CERT_FILE = certificate;
installation.env.TLS_KEY_FILE = join(dir, 'key.pem');
const secure = await installation.startApi();
installation.env.API_PROCESSES = '2';
const several = await installation.startApi();
const processes = { worker, plain, secure, several };
const scrape = () => scrapeAll(processes);
const scrapeOnce = (line: RegExp) => scrapeUntil(processes, line);

const health = await scrapeOnce(/^attest_api_processes_ready 2/m);

t.test('health fires nothing', async (t) => {
  t.equal(await disproveFiring({ before: health, during: health }, []), undefined);
});

t.test('certificates that expire', async (t) => {
  await useCertificate(10);
  const ten = await scrape();
  t.equal(await disproveFiring({ before: health, during: ten }, ['AttestCertificateExpires']), undefined);
  await useCertificate(1);
  t.equal(
    await disproveFiring({ before: health, during: await scrape() }, [
      'AttestCertificateExpires',
      'AttestCertificateExpiresSoon',
    ]),
    undefined,
  );
  await useCertificate(30);
});

t.test('an API process dies', async (t) => {
  const served = several.lines.find(({ msg }) => /^an API process serves/.test(msg));
  process.kill(Number(served?.api_pid), 'SIGKILL');
  const during = await scrapeOnce(/^attest_api_processes_ready 1/m);
  t.equal(
    await disproveFiring({ before: health, during }, ['AttestApiProcessDied', 'AttestApiProcessMissing']),
    undefined,
  );
  const back = await scrapeOnce(/^attest_api_processes_ready 2/m);
  t.equal(await disproveFiring({ before: health, during: back }, ['AttestApiProcessDied']), undefined);
});

t.test('clocks that are apart', async (t) => {
  const before = await scrape();
  await letPass({ pool }, 2_500);
  const drifted = await scrapeOnce(/^attest_clock_offset_seconds -[2-4]\./m);
  t.equal(await disproveFiring({ before, during: drifted }, ['AttestClockDrifts']), undefined);
  await letPass({ pool }, 3_600_000);
  const apart = await scrapeOnce(/^attest_clock_offset_seconds -36/m);
  t.equal(
    await disproveFiring({ before, during: apart }, ['AttestClockDrifts', 'AttestClockOff']),
    undefined,
  );
});
