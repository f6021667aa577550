/** What runs beside the service: a signer that is asked for a second history, an audit that sees one, and their alerts. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { ED25519, openSocketSigner } from '../../../src/server/keys/socket/socket-signer.js';
import { follow } from '../../cli/audit/following.js';
import { makeHistories, publishLog } from '../../cli/audit/published-log.js';
import { newCreation, send } from '../../support/calling/load.js';
import { disproveFiring, IDLE, scrapeUntil } from '../../support/judging/alerts.js';
import { makeInstallation, makeUnlimitedKey } from '../../support/servers/installation.js';
import { startSignerProcess } from '../../support/servers/kms/signer-process.js';
import { startVault, VAULT_TOKEN } from '../../support/servers/kms/vault.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';

const ORIGIN = 'live.log.example.com';
const dir = mkdtempSync(join(tmpdir(), 'attest-token-'));
t.teardown(() => rmSync(dir, { recursive: true }));
const tokenFile = join(dir, 'token');
writeFileSync(tokenFile, VAULT_TOKEN);
const vault = await startVault(t, { log: generateKeyPairSync('ed25519').privateKey });
const signer = await startSignerProcess(t, {
  backends: { vault: { kind: 'vault-transit', url: vault.url, token_file: tokenFile } },
  keys: { log: { backend: 'vault', purpose: 'log', origin: ORIGIN, key: 'log', version: '1' } },
});

const installation = await makeInstallation(t);
const { LOG_KEY_FILE = '' } = installation.env;
installation.env.LOG_KEY_FILE = LOG_KEY_FILE.replace(/live=[^,]+/, `live=${signer.setting('log')}`);
const pool = installation.openPool();
const apiKey = await makeUnlimitedKey(pool);
const worker = await installation.startWorker();
const api = await installation.startApi();

const { service, entries, fork } = await makeHistories(t);
const published = await publishLog(t, service);
published.show(entries.slice(0, 600));
published.show(entries.slice(0, 600), { folder: 'mirror' });
const flags = ['--mirror', `${published.url}/mirror`, '--metrics', '127.0.0.1:0'];

async function startAudit(...more: string[]) {
  const following = follow(t, [published.url, ...flags, ...more]);
  const { port } = await following.see('listening');
  return { ...following, opsUrl: `http://127.0.0.1:${String(port)}` };
}

const audit = await startAudit('--keep-going');
const ending = await startAudit();
const scrapeOnce = (...lines: RegExp[]) => scrapeUntil({ api, worker, signer, audit, ending }, ...lines);

await send(api.baseUrl, apiKey, newCreation());
await untilWitnessed(pool);
const health = await scrapeOnce(
  ...IDLE,
  /^attest_signer_requests_total\{key="log",outcome="signed"\} [1-9]/m,
  /^attest_audit_verified_entries\{origin="live\.log\.example"\} 600$/m,
);

t.test('health fires nothing', async (t) => {
  t.equal(await disproveFiring({ before: health, during: health }, []), undefined);
});

t.test('a signer is asked for a second root of a size that it has signed', async (t) => {
  const key = await openSocketSigner({ socketPath: signer.socketPath, keyId: 'log' }, ED25519);
  t.teardown(key.close);
  const second = `${ORIGIN}\n1\n${Buffer.alloc(32).toString('base64')}\n`;
  await t.rejects(key.sign(Buffer.from(second)), /another root of live\.log\.example\.com at size 1/);
  const during = await scrapeOnce(/^attest_signer_requests_total\{key="log",outcome="rejected"\} 1$/m);
  t.equal(await disproveFiring({ before: health, during }, ['AttestSignerRejects']), undefined);
});

t.test('an audit sees another history at a mirror; without --keep-going it ends', async (t) => {
  const before = await scrapeOnce(...IDLE);
  published.show(fork.slice(0, 700), { folder: 'mirror' });
  t.equal(await ending.ended(), 3);
  const during = await scrapeOnce(/^attest_audit_open_alarms\{origin="live\.log\.example"\} 1$/m);
  const expected = ['AttestAuditAlarm', 'AttestProcessDown'];
  t.equal(await disproveFiring({ before, during }, expected), undefined);
});
