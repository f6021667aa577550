import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { publicUrls, readConfig } from '../../src/config/config.js';
import { postgresUrl } from '../../src/config/server-urls.js';
import { fileKey } from '../support/certificates/file-key.js';
import { KEY, OPEN_LIMITS, problemsOf, SERVER, server } from './samples.js';

t.test('an empty environment configures `up` completely, and only `up`', async (t) => {
  const config = readConfig({}, { process: 'up' });
  t.match(config, {
    host: '127.0.0.1',
    port: 8080,
    opsHost: '127.0.0.1',
    opsPort: 9090,
    dataDir: join(process.cwd(), '.data'),
    checkpointRegister: join(process.cwd(), '.data', 'checkpoint-register'),
    witnesses: [],
    witnessDeadlineMs: 3_600_000,
    batchIntervalMs: 1_000,
    batchMaxLeaves: 65_536,
    idempotencyRetentionMs: 86_400_000,
    corsOrigins: [],
    logLevel: 'info',
    poolSize: 10,
    openLimits: OPEN_LIMITS,
  });
  for (const name of [
    'databaseUrl',
    'natsUrl',
    'baseUrl',
    'verifyUrl',
    'logDomain',
    'tls',
    'schemaDir',
  ] as const) {
    t.equal(config[name], undefined, name);
  }
  const missing = ['DATABASE_URL', 'NATS_URL', 'SECRET_KEY', 'DSSE_KEY_FILE', 'LOG_KEY_FILE'];
  for (const process of ['api', 'worker'] as const) {
    t.same(
      problemsOf({}, process),
      missing.map((name) => `${name} is not set`),
      process,
    );
  }
  t.same(problemsOf({}, 'migrate'), ['DATABASE_URL is not set']);
});

t.test('webhooks of `up` may call this machine if only it reaches `up`, or by a setting', async (t) => {
  const allows = (env: Record<string, string>) =>
    readConfig(env, { process: 'up' }).allowInsecureDestinations;
  for (const HOST of ['127.0.0.1', '127.1.2.3', '::1', 'localhost']) t.equal(allows({ HOST }), true, HOST);
  for (const HOST of ['0.0.0.0', '::', '192.0.2.1']) {
    t.equal(allows({ HOST }), false, HOST);
    t.equal(allows({ HOST, ALLOW_INSECURE_DESTINATIONS: 'true' }), true, HOST);
  }
});

t.test("the operator's cloud credentials serve the buckets and hosts that are listed", async (t) => {
  const listed = (text: string) =>
    readConfig({ ALLOW_AMBIENT_CREDENTIALS: text }, { process: 'up' }).ambientCredentials;
  t.same(readConfig({}, { process: 'up' }).ambientCredentials, []);
  t.same(listed('example-attestations'), ['example-attestations']);
  t.same(listed('example-attestations, example.blob.core.windows.net'), [
    'example-attestations',
    'example.blob.core.windows.net',
  ]);
  t.same(listed(''), []);
});

t.test("the authorities that Node trusts beside its own are known to other programs' callers", async (t) => {
  t.equal(readConfig({}, { process: 'up' }).extraCaFile, undefined);
  const { extraCaFile } = readConfig({ NODE_EXTRA_CA_CERTS: '/etc/ssl/company.pem' }, { process: 'up' });
  t.equal(extraCaFile, '/etc/ssl/company.pem');
});

t.test("programs of others are looked for on the service's own PATH", async (t) => {
  t.equal(readConfig({ PATH: '/opt/git/bin:/bin' }, { process: 'up' }).programPath, '/opt/git/bin:/bin');
});

t.test('an environment may have several keys, in their order', async (t) => {
  const { dir, ...env } = server(t);
  const another = generateKeyPairSync('ed25519').privateKey;
  writeFileSync(join(dir, 'log-2.pem'), another.export({ type: 'pkcs8', format: 'pem' }));
  const LOG_KEY_FILE = `live=${join(dir, 'log-2.pem')},${env.LOG_KEY_FILE}`;
  const { log } = readConfig({ ...env, LOG_KEY_FILE }, { process: 'worker' }).secrets;
  t.equal(log.live.length, 2);
  t.ok(fileKey(log.live[0]).equals(another));
  t.equal(log.test.length, 1);
});

t.test('a key that signs statements or checkpoints may be in another process', async (t) => {
  const { dir, ...env } = server(t);
  const DSSE_KEY_FILE = `live=socket:/run/signer.sock#slot-1,${env.DSSE_KEY_FILE}`;
  const LOG_KEY_FILE = `${env.LOG_KEY_FILE},test=socket:/run/signer.sock#slot-2`;
  const { dsse, log } = readConfig({ ...env, DSSE_KEY_FILE, LOG_KEY_FILE }, { process: 'api' }).secrets;
  t.strictSame(log.test[1], { socketPath: '/run/signer.sock', keyId: 'slot-2' });
  t.strictSame(dsse.live[0], { socketPath: '/run/signer.sock', keyId: 'slot-1' });
  t.equal(fileKey(dsse.live[1]!).asymmetricKeyType, 'ec');
});

t.test('a complete configuration of `api` and `worker` is read', async (t) => {
  const { dir, ...env } = server(t);
  for (const process of ['api', 'worker'] as const) {
    const config = readConfig({ ...env, DATA_DIR: dir }, { process });
    t.equal(config.host, '0.0.0.0');
    t.equal(config.opsHost, '127.0.0.1');
    t.equal(config.databaseUrl, SERVER.DATABASE_URL);
    t.equal(config.natsUrl, SERVER.NATS_URL);
    t.equal(config.secrets.secretKeys[0].id, 'k1');
    t.equal(fileKey(config.secrets.dsse.live[0]).asymmetricKeyType, 'ec');
    t.equal(fileKey(config.secrets.log.test[0]).asymmetricKeyType, 'ed25519');
    t.equal(config.secrets.adminToken, SERVER.ADMIN_TOKEN);
    t.equal(config.checkpointRegister, join(dir, 'checkpoint-register'));
    t.notMatch(JSON.stringify(config.secrets.secretKeys), KEY, 'keys do not show in JSON');
  }
});

t.test('every wrong and missing setting is reported at once, with its expected form', async (t) => {
  const env = { PORT: '80a', BATCH_INTERVAL: '1 s', SECRET_KEY: 'k1:short', LOG_DOMAIN: 'Example.com' };
  try {
    readConfig(env, { process: 'api' });
    t.fail('it should throw');
  } catch (error) {
    t.equal(
      (error as Error).message,
      [
        '8 settings are wrong:',
        '  DATABASE_URL is not set, expected a connection string, such as postgres://user:password@host:5432/database',
        '  NATS_URL is not set, expected one or more comma-separated servers, such as nats://host:4222',
        '  SECRET_KEY is wrong (key 1 is not base64 of 32 bytes), expected <id>:<base64 of 32 random bytes>, or several separated by commas, the current one first',
        '  DSSE_KEY_FILE is not set, expected live=<file>,test=<file>, each with an ECDSA P-256 private key in PKCS#8 PEM',
        '  LOG_KEY_FILE is not set, expected live=<file>,test=<file>, each with an Ed25519 private key in PKCS#8 PEM',
        '  PORT is "80a", expected a port from 0 to 65535, where 0 picks a free one',
        '  LOG_DOMAIN is "Example.com", expected a bare host name in lower case, such as log.example.com',
        '  BATCH_INTERVAL is "1 s", expected a duration from 10ms to 1h: a whole number and ms, s, m, h or d',
      ].join('\n'),
    );
  }
});

t.test('an empty setting is one that is not set', async (t) => {
  t.equal(readConfig({ PORT: '', WITNESSES: '', SECRET_KEY: '' }, { process: 'up' }).port, 8080);
  t.same(problemsOf({ DATABASE_URL: '' }, 'migrate'), ['DATABASE_URL is not set']);
});

t.test('no error shows a secret, right or wrong', async (t) => {
  const secret = 'TOPSECRET';
  const env = {
    DATABASE_URL: `mysql://user:${secret}@h/d`,
    NATS_URL: `nats//:${secret}@h`,
    SECRET_KEY: `${secret}:${secret}`,
    ADMIN_TOKEN: `${secret} ${secret} ${secret}`,
    BASE_URL: `https://user:${secret}@h`,
    VERIFY_URL: `https://h/?token=${secret}`,
    WITNESSES: JSON.stringify([
      { name: 'a', kind: 'rfc3161', url: `https://u:${secret}@h`, chain_pem: secret },
    ]),
    PORT: 'x',
  };
  for (const process of ['up', 'api', 'worker', 'migrate'] as const) {
    try {
      readConfig(env, { process });
      t.fail('it should throw');
    } catch (error) {
      t.notMatch(`${(error as Error).stack}${JSON.stringify(error)}`, secret, process);
    }
  }
});

t.test('the public addresses follow the listening port unless they are set', async (t) => {
  const bare = readConfig({ PORT: '0' }, { process: 'up' });
  t.same(publicUrls(bare, 41_234), {
    baseUrl: 'http://localhost:41234',
    verifyUrl: 'http://localhost:41234/verify',
  });
  const named = readConfig({ BASE_URL: 'https://a.example/x/' }, { process: 'up' });
  t.same(publicUrls(named, 1), { baseUrl: 'https://a.example/x', verifyUrl: 'https://a.example/x/verify' });
  const tls = { ...bare, tls: { certFile: 'c', keyFile: 'k' } };
  t.equal(publicUrls(tls, 8443).baseUrl, 'https://localhost:8443');
});

t.test('DATABASE_URL names one server or several, of which the primary is used', async (t) => {
  for (const url of ['postgres://u:p,q@a:5432/d', 'postgres://u:p@a:5432,b:5432,c/d'])
    t.equal(postgresUrl.parse(url), url);
  t.throws(() => postgresUrl.parse('postgres://a,b/d?target_session_attrs=any'), {
    message: /leave out target_session_attrs/,
  });
});

t.test('telemetry is on where there is an endpoint, for each signal that is not switched off', async (t) => {
  const read = (env: Record<string, string>) => readConfig(env, { process: 'up' }).telemetry;
  const OTEL_EXPORTER_OTLP_ENDPOINT = 'http://localhost:4318';
  t.equal(read({ OTEL_SERVICE_NAME: 'x', OTEL_TRACES_SAMPLER: 'always_on' }), undefined);
  t.equal(read({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SDK_DISABLED: 'true' }), undefined);
  t.match(read({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_LOGS_EXPORTER: 'none' }), {
    traces: true,
    metrics: true,
    logs: false,
  });
  t.match(read({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://localhost:4318/x' }), {
    traces: true,
    metrics: false,
    logs: false,
  });
});
