/** Keys of key management services: what is sent to them, what comes back, and what an operator reads when it fails. */
import { generateKeyPairSync, type KeyObject, verify } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { readConfig } from '../../../src/config/config.js';
import { ECDSA_P256, ED25519, openSocketSigner } from '../../../src/server/keys/socket/socket-signer.js';
import { openAzureKeyVault } from '../../../src/server/signer/backends/azure-key-vault.js';
import { AWS_ENV, startAwsKms } from '../../support/servers/kms/aws-kms.js';
import { AZURE_TOKEN, AZURE_VERSION, startKeyVault } from '../../support/servers/kms/azure-key-vault.js';
import {
  GCP_SUBJECT_TOKEN,
  gcpCredentials,
  gcpName,
  startGcpKms,
} from '../../support/servers/kms/gcp-kms.js';
import { startSignerProcess } from '../../support/servers/kms/signer-process.js';
import { startVault, VAULT_TOKEN } from '../../support/servers/kms/vault.js';

const KEYS: Record<string, KeyObject> = {
  statements: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  log: generateKeyPairSync('ed25519').privateKey,
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
};
const ORIGIN = 'live.log.example.com';
const statement = (text: string) => Buffer.from(`DSSEv1 28 application/vnd.in-toto+json ${text}`);
const checkpoint = (size: number) =>
  Buffer.from(`${ORIGIN}\n${size}\n${Buffer.alloc(32, size).toString('base64')}\n`);

const dir = t.testdir();
const tokenFile = join(dir, 'token');
await writeFile(tokenFile, `${VAULT_TOKEN}\n`);
const aws = await startAwsKms(t, KEYS);
const gcp = await startGcpKms(t, KEYS);
const vault = await startVault(t, KEYS);
const credentials = join(dir, 'google.json');
const subjectToken = join(dir, 'subject');
await writeFile(subjectToken, GCP_SUBJECT_TOKEN);
await writeFile(credentials, gcpCredentials(gcp, subjectToken));
const ENV = { ...AWS_ENV, GOOGLE_APPLICATION_CREDENTIALS: credentials };

const backends = {
  aws: { kind: 'aws-kms', endpoint: aws.url },
  gcp: { kind: 'gcp-kms', endpoint: gcp.url },
  vault: { kind: 'vault-transit', url: vault.url, token_file: tokenFile },
};
const REFERENCES = {
  aws: (key: string) => ({ key }),
  gcp: (key: string) => ({ key: gcpName(key) }),
  vault: (key: string) => ({ key, version: '1' }),
};
type Service = keyof typeof REFERENCES;
const SERVICES = Object.keys(REFERENCES) as Service[];

const keys = Object.fromEntries(
  SERVICES.flatMap((backend, i) => [
    [backend, { backend, purpose: 'statements', ...REFERENCES[backend]('statements') }],
    // A log's key of each service, under an origin of its own.
    [`${backend}/log`, { backend, purpose: 'log', origin: `${i}.${ORIGIN}`, ...REFERENCES[backend]('log') }],
  ]),
);

t.test('each service signs statements and checkpoints, many at once', async (t) => {
  const signer = await startSignerProcess(t, { backends, keys }, ENV);
  const open = (keyId: string, algorithm: typeof ECDSA_P256) =>
    openSocketSigner({ socketPath: signer.socketPath, keyId }, algorithm);
  for (const [i, service] of SERVICES.entries()) {
    const server = { aws, gcp, vault }[service];
    const ecdsa = await open(service, ECDSA_P256);
    const ed25519 = await open(`${service}/log`, ED25519);
    t.teardown(ecdsa.close);
    t.teardown(ed25519.close);
    // The client verifies each. The first ones load the SDK.
    for (let n = 0; n < 5; n++) await ecdsa.sign(statement(`first ${n}`));
    server.delayMs = 20;
    [server.asked, server.most] = [0, 0];
    await Promise.all(Array.from({ length: 50 }, (_, n) => ecdsa.sign(statement(`${service} ${n}`))));
    if (service === 'vault') t.ok(server.asked < 20, `Vault was asked ${server.asked} times`);
    else t.ok(server.most > 10 && server.most <= 128, `${service}: ${server.most} at once`);
    server.delayMs = 0;
    t.ok(await ed25519.sign(Buffer.from(checkpoint(7).toString().replace(ORIGIN, `${i}.${ORIGIN}`))));
    await Promise.all(Array.from({ length: 10 }, () => ecdsa.sign(statement('the same'))));
  }
  t.comment('one request that fails is made again; one that is answered is not');
  for (const service of SERVICES) {
    const server = { aws, gcp, vault }[service];
    const signing = await open(service, ECDSA_P256);
    t.teardown(signing.close);
    let failures = 1;
    server.manner = () => (failures-- > 0 ? 'cut' : undefined);
    t.ok(await signing.sign(statement('cut')));
    failures = 1;
    server.manner = () => (failures-- > 0 ? { status: 503, json: {} } : undefined);
    t.ok(await signing.sign(statement('unavailable')));
    server.manner = () => undefined;
  }
});

t.test('a rejection names what to do', async (t) => {
  const signer = await startSignerProcess(t, { backends, keys }, ENV);
  const open = (keyId: string) => openSocketSigner({ socketPath: signer.socketPath, keyId }, ECDSA_P256);
  const reasonOf = async (service: Service, status: number, json: unknown) => {
    const server = { aws, gcp, vault }[service];
    const key = await open(service);
    t.teardown(key.close);
    server.manner = () => ({ status, json });
    const { message } = await key.sign(statement('x')).then(
      () => new Error('it signed'),
      (error: Error) => error,
    );
    server.manner = () => undefined;
    return message;
  };
  const amazon = (__type: string) => reasonOf('aws', 400, { __type, message: 'as said' });
  t.match(
    await amazon('AccessDeniedException'),
    /KMS denies it: allow kms:GetPublicKey and kms:Sign for .*\(as said\)/,
  );
  t.match(await amazon('DisabledException'), /is disabled, or waits for its deletion: enable it/);
  t.match(await amazon('ThrottlingException'), /KMS throttles requests: raise the quota/);
  const google = (code: number) => reasonOf('gcp', code, { error: { code, message: 'as said' } });
  t.match(await google(403), /the service account needs roles\/cloudkms.signerVerifier \(as said\)/);
  t.match(await google(429), /Cloud KMS throttles requests/);
  const said = (status: number) => reasonOf('vault', status, { errors: ['as said'] });
  t.match(await said(403), /Vault denies transit\/sign\/statements: renew the token of /);
  t.match(await said(503), /Vault is sealed or in standby: unseal it/);
  t.match(
    await reasonOf('gcp', 200, { name: gcpName('statements'), signature: 'AA==', signatureCrc32c: '1' }),
    /corrupted/,
  );
  t.match(await reasonOf('vault', 200, { data: { batch_results: [] } }), /Vault has not signed/);
  t.match(await reasonOf('aws', 200, {}), /KMS returned no signature/);
  t.comment('a signature that fails is not that of others in its request');
  const key = await open('vault');
  t.teardown(key.close);
  const both = await Promise.allSettled([key.sign(statement('poison')), key.sign(statement('good'))]);
  t.match(both, [{ status: 'rejected' }, { status: 'fulfilled' }]);
  t.match(await (await fetch(`${signer.opsUrl}/readyz`)).json(), { status: 'not ready' });
});

t.test('Azure Key Vault signs by P-256 and has no other key', async (t) => {
  const server = await startKeyVault(t, KEYS);
  const config = {
    backends: { azure: { kind: 'azure-key-vault', url: server.url } },
    keys: { a: { backend: 'azure', purpose: 'statements', key: 'statements', version: AZURE_VERSION } },
  };
  const env = { SIGNER_CONFIG: JSON.stringify(config), SIGNER_SOCKET: '/run/signer.sock' };
  const { backends } = readConfig(env, { process: 'signer' });
  const [found] = backends;
  if (found?.kind !== 'azure-key-vault') throw new Error('another backend was read');
  const scopes: unknown[] = [];
  const credential = {
    getToken: async (scope: unknown) => {
      scopes.push(scope);
      return { token: AZURE_TOKEN, expiresOnTimestamp: Date.now() + 3_600_000 };
    },
  };
  const backend = await openAzureKeyVault(found, credential);
  t.teardown(backend.close);
  const signal = AbortSignal.timeout(10_000);
  const reference = (key: string) => ({ key, version: AZURE_VERSION, id: undefined });
  const key = await backend.open(reference('statements'), signal);
  const data = statement('x');
  const publicKey = { key: Buffer.from(key.spki), format: 'der', type: 'spki' } as const;
  t.ok(verify('sha256', data, publicKey, await key.sign(data, signal)));
  t.equal(scopes.length, 1, 'the token is kept');
  await t.rejects(backend.open(reference('rsa'), signal), /rsa is a key of type RSA, not ECDSA P-256/);
  await t.rejects(
    backend.open(reference('none'), signal),
    /has no keys\/none\/0123.*\(KeyNotFound as it is said/,
  );
  server.manner = () => ({ status: 403, json: { error: { message: 'as said' } } });
  await t.rejects(key.sign(data, signal), /the identity needs the role Key Vault Crypto User.*\(as said\)/);
});
