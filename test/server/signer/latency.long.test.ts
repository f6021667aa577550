/** What creates cost whose keys are 20 ms away: they share the wait. Prints the figures of docs/signing-process.md. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type App, startApp } from '../../support/app.js';
import { newKey } from '../../support/calling/test-keys.js';
import { AWS_ENV, startAwsKms } from '../../support/servers/kms/aws-kms.js';
import { startSignerProcess } from '../../support/servers/kms/signer-process.js';
import { startVault, VAULT_TOKEN } from '../../support/servers/kms/vault.js';
import { creation } from '../rpc/samples.js';

const DELAY_MS = 20;
const MEASURED_MS = 4_000;

const p256 = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const KEYS = { live: p256(), test: p256() };

t.test('a key in a file', async (t) => measure(t, 'a file', await startApp(t, { isWithoutWorker: true })));

t.test('keys in AWS KMS', async (t) => {
  const server = await startAwsKms(t, KEYS);
  await measureService(t, 'aws-kms', { kind: 'aws-kms', endpoint: server.url }, {}, server);
});

t.test('keys in Vault', async (t) => {
  const server = await startVault(t, KEYS);
  const tokenFile = join(t.testdir(), 'token');
  await writeFile(tokenFile, VAULT_TOKEN);
  const backend = { kind: 'vault-transit', url: server.url, token_file: tokenFile };
  await measureService(t, 'vault-transit', backend, { version: '1' }, server);
});

async function measureService(
  t: Test,
  name: string,
  backend: object,
  reference: object,
  server: { delayMs: number },
): Promise<void> {
  const keyOf = (key: string) => ({ backend: name, purpose: 'statements', key, ...reference });
  const config = { backends: { [name]: backend }, keys: { live: keyOf('live'), test: keyOf('test') } };
  const signer = await startSignerProcess(t, config, AWS_ENV);
  const env = { DSSE_KEY_FILE: `live=${signer.setting('live')},test=${signer.setting('test')}` };
  const app = await startApp(t, { env, isWithoutWorker: true });
  server.delayMs = DELAY_MS;
  const { single, many, batchMs } = await measure(t, name, app);
  t.ok(many > 8 * single, '64 clients share the wait');
  // Four slices, each of which waits for two rounds at most of what the backend has open.
  t.ok(batchMs < 1_000 * DELAY_MS * 0.2, 'so do the items of a batch');
}

async function measure(t: Test, name: string, app: App) {
  const { key } = await newKey(app);
  const body = () => creation(randomBytes(32).toString('hex'));
  const createFor = async (clients: number) => {
    const endMs = performance.now() + MEASURED_MS;
    let made = 0;
    const client = async () => {
      while (performance.now() < endMs) {
        const { status } = await app.rest('/v1/attestations', { apiKey: key, body: body() });
        if (status === 201) made++;
      }
    };
    await Promise.all(Array.from({ length: clients }, client));
    return Math.round(made / (MEASURED_MS / 1_000));
  };
  await createFor(1);
  const [single, many] = [await createFor(1), await createFor(64)];
  const items = () => Array.from({ length: 1_000 }, body);
  const createBatch = async () => {
    const startMs = performance.now();
    const request = { apiKey: key, body: { items: items() } };
    t.equal((await app.rest('/v1/attestations:batch', request)).status, 200);
    return Math.round(performance.now() - startMs);
  };
  await createBatch();
  const batchMs = await createBatch();
  t.comment(`${name}: 1 client ${single}/s, 64 clients ${many}/s, a batch of 1,000 in ${batchMs} ms`);
  console.log(
    `FIGURE ${name}: 1 client ${single}/s, 64 clients ${many}/s, a batch of 1,000 in ${batchMs} ms`,
  );
  return { single, many, batchMs };
}
