import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type ConfigByCommand, publicUrls, readConfig } from '../../src/config/config.js';
import { fileKey } from '../support/certificates/file-key.js';
import { KEY, problemsOf, SERVER, server } from './samples.js';

const OPEN_LIMITS = {
  maxConnections: 10_000,
  maxRequests: 4_096,
  maxHeldBytes: 64 * 1024 * 1024,
  maxConnectionsPerPeer: 1_000,
  maxRequestsPerPeer: 1_000,
  trustedProxies: ['127.0.0.0/8', '::1'],
};

t.test('nothing set is a complete configuration of `up`, and only of `up`', async (t) => {
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

t.test('every wrong and missing setting is reported at once, with what it should look like', async (t) => {
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

t.test('each setting accepts its valid values', async (t) => {
  const { dir } = server(t);
  const good: [name: string, text: string, key: keyof ConfigByCommand['up'], value: unknown][] = [
    ['PORT', '0', 'port', 0],
    ['PORT', '65535', 'port', 65_535],
    ['OPS_PORT', '9191', 'opsPort', 9_191],
    ['HOST', '::1', 'host', '::1'],
    ['HOST', 'api.internal', 'opsHost', '127.0.0.1'],
    ['OPS_HOST', '10.0.0.1', 'opsHost', '10.0.0.1'],
    ['ADMIN_PORT', '9191', 'adminPort', 9_191],
    ['ADMIN_PORT', '9191', 'adminHost', '127.0.0.1'],
    ['DATA_DIR', dir, 'dataDir', dir],
    ['CHECKPOINT_REGISTER', '/r', 'checkpointRegister', '/r'],
    ['BASE_URL', 'https://Attest.example.com/', 'baseUrl', 'https://attest.example.com'],
    ['BASE_URL', 'https://example.com/attest/', 'baseUrl', 'https://example.com/attest'],
    ['BASE_URL', 'https://attest.example.com', 'logDomain', undefined],
    ['VERIFY_URL', 'https://cdn.example.com/v', 'verifyUrl', 'https://cdn.example.com/v'],
    ['LOG_DOMAIN', 'log.example.com', 'logDomain', 'log.example.com'],
    ['WITNESS_DEADLINE', '90m', 'witnessDeadlineMs', 5_400_000],
    ['BATCH_INTERVAL', '10ms', 'batchIntervalMs', 10],
    ['BATCH_MAX_LEAVES', '1', 'batchMaxLeaves', 1],
    ['SCHEMA_DIR', join(dir, 'schemas'), 'schemaDir', join(dir, 'schemas')],
    ['IDEMPOTENCY_RETENTION', '30d', 'idempotencyRetentionMs', 2_592_000_000],
    ['CORS_ORIGINS', '*', 'corsOrigins', ['*']],
    ['CORS_ORIGINS', 'https://a.example, http://b:1', 'corsOrigins', ['https://a.example', 'http://b:1']],
    ['LOG_LEVEL', 'silent', 'logLevel', 'silent'],
    ['PG_POOL', '500', 'poolSize', 500],
    ['API_PROCESSES', '64', 'apiProcesses', 64],
    ['EXPORT_SPOOL_MIB', '64', 'exportSpoolBytes', 64 * 1024 * 1024],
    ['MAX_REQUESTS', '5', 'openLimits', { ...OPEN_LIMITS, maxRequests: 5 }],
    ['TRUSTED_PROXIES', 'none', 'openLimits', { ...OPEN_LIMITS, trustedProxies: [] }],
    [
      'TRUSTED_PROXIES',
      '10.0.0.0/8, ::1',
      'openLimits',
      { ...OPEN_LIMITS, trustedProxies: ['10.0.0.0/8', '::1'] },
    ],
    ['NATS_REPLICAS', '3', 'natsReplicas', 3],
    ['DATABASE_URL', 'postgresql://h', 'databaseUrl', 'postgresql://h'],
    [
      'DATABASE_URL',
      'postgres://u:p@a:1,b:2/db?sslmode=require',
      'databaseUrl',
      'postgres://u:p@a:1,b:2/db?sslmode=require',
    ],
    ['NATS_URL', 'tls://nats:4222', 'natsUrl', 'tls://nats:4222'],
  ];
  for (const [name, text, key, value] of good) {
    t.same(readConfig({ [name]: text }, { process: 'up' })[key], value, `${name}=${text}`);
  }
});

t.test('each setting rejects invalid values', async (t) => {
  const { dir } = server(t);
  const at = (name: string) => join(dir, name);
  const bad: [name: string, ...texts: string[]][] = [
    ['PORT', '65536', '-1', '1.5', '1e3', ' 80', '0x50', '9'.repeat(400)],
    ['OPS_PORT', 'http'],
    ['ADMIN_PORT', 'http', '8080', '9090'],
    ['ADMIN_HOST', '127.0.0.1', '*'],
    ['HOST', '1.2.3.4:80', 'a b', '300.1.1.1', 'a_b', '-a'],
    ['OPS_HOST', '*'],
    ['DATA_DIR', 'a\0b', 'a'.repeat(5000)],
    [
      'BASE_URL',
      'attest.example.com',
      'ftp://a',
      'https://u@a',
      'https://a/?q=1',
      'https://a/#f',
      'https://',
    ],
    ['VERIFY_URL', '/verify'],
    ['LOG_DOMAIN', 'https://a.example', 'a.example:80', 'a..b', '.a', 'a.', '10.0.0.1', 'a.1', 'é.example'],
    ['LOG_DOMAIN', `${'a'.repeat(64)}.example`, `${'a.'.repeat(130)}a`, 'a\nb'],
    ['WITNESS_DEADLINE', '0s', '59s', '31d', '1h30m', '1.5h', '60', 'h', '-1h', '9999999999999h'],
    ['BATCH_INTERVAL', '9ms', '61m'],
    ['BATCH_MAX_LEAVES', '0', '1048577', ''.padEnd(20, '1')],
    ['SCHEMA_DIR', at('nowhere'), at('chain.pem')],
    ['IDEMPOTENCY_RETENTION', '59s'],
    ['CORS_ORIGINS', 'a.example', 'https://a.example/', 'https://a.example,*', 'null', ','],
    ['LOG_LEVEL', 'verbose', 'INFO'],
    ['PG_POOL', '1', '501'],
    ['EXPORT_SPOOL_MIB', '63', '1048577'],
    ['MAX_CONNECTIONS', '0', '-1', 'many'],
    ['MAX_BODY_MIB', '3'],
    ['TRUSTED_PROXIES', 'proxy.example', '10.0.0.0/33', '10.0.0.0/8/8', '10.0.0.0/', ',', '::1/129'],
    ['DATABASE_URL', 'mysql://h/d', 'h/d', 'postgres://', 'postgres://h /d'],
    ['NATS_URL', 'http://n', 'nats://', 'nats://a,', 'nats://a b'],
    ['SECRET_KEY', KEY, `:${KEY}`, `k1:${KEY},k1:${KEY}`, `k1:${KEY}x`, `k 1:${KEY}`, `k1:${KEY},`],
    ['SECRET_KEY', Array.from({ length: 17 }, (_, i) => `k${i}:${KEY}`).join(',')],
    ['SECRET_KEY', `k1:${KEY.replace(/=$/, '')}`, `k1:${randomBytes(31).toString('base64')}`],
    ['ADMIN_TOKEN', 'short', 'with spaces with spaces with spaces', 'x'.repeat(257)],
    ['DSSE_KEY_FILE', at('dsse-live.pem'), `live=${at('dsse-live.pem')}`, `live=${at('a')},test=${at('b')}`],
    ['DSSE_KEY_FILE', `live=${at('dsse-live.pem')},test=${at('dsse-live.pem')}`],
    ['DSSE_KEY_FILE', ['live', 'live', 'test'].map((name) => `${name}=${at(`dsse-${name}.pem`)}`).join(',')],
    ['DSSE_KEY_FILE', `live=${at('dsse-live.pem')},test=${at('dsse-test.pem')},`],
    ['DSSE_KEY_FILE', `live=${at('dsse-live.pem')},prod=${at('dsse-test.pem')}`],
    ['DSSE_KEY_FILE', `live=${at('log-live.pem')},test=${at('dsse-test.pem')}`],
    ['DSSE_KEY_FILE', `live=${at('p384.pem')},test=${at('dsse-test.pem')}`],
    ['DSSE_KEY_FILE', `live=${at('sec1.pem')},test=${at('dsse-test.pem')}`],
    ['DSSE_KEY_FILE', `live=${at('broken.pem')},test=${at('dsse-test.pem')}`],
    ['DSSE_KEY_FILE', `live=socket:signer.sock#k,test=${at('dsse-test.pem')}`],
    ['DSSE_KEY_FILE', `live=socket:/run/signer.sock,test=${at('dsse-test.pem')}`],
    ['DSSE_KEY_FILE', `live=socket:/run/signer.sock#a b,test=${at('dsse-test.pem')}`],
    ['DSSE_KEY_FILE', 'live=socket:/run/signer.sock#a,test=socket:/run/signer.sock#a'],
    ['LOG_KEY_FILE', 'live=socket:/run/signer.sock#a,test=socket:/run/signer.sock#a'],
    ['LOG_ML_DSA_KEY_FILE', 'live=socket:/run/signer.sock#a,test=socket:/run/signer.sock#b'],
    ['LOG_KEY_FILE', `live=${at('dsse-live.pem')},test=${at('log-test.pem')}`],
    ['TLS_CERT_FILE', at('chain.pem')],
    ['TLS_KEY_FILE', at('dsse-live.pem')],
    ['WITNESSES', at('nowhere.json'), at('big.json'), at('chain.pem'), '[', '{}', '[1]', '[null]', '[[]]'],
    ['WITNESSES', JSON.stringify(Array.from({ length: 65 }, () => ({})))],
  ];
  for (const [name, ...texts] of bad) {
    for (const text of texts) {
      const problems = problemsOf({ [name]: text });
      t.ok(
        problems.length > 0 &&
          problems.every((problem) => /^(TLS_|WITNESSES)/.test(problem) || problem.startsWith(name)),
        `${name}=${JSON.stringify(text.slice(0, 60))}`,
        { problems },
      );
    }
  }
  t.same(problemsOf({ TLS_CERT_FILE: at('chain.pem'), TLS_KEY_FILE: at('log-live.pem') }), [
    'TLS_CERT_FILE and TLS_KEY_FILE are wrong (the key does not match the certificate)',
  ]);
  t.same(problemsOf({ TLS_CERT_FILE: at('log-live.pem'), TLS_KEY_FILE: at('log-live.pem') }), [
    'TLS_CERT_FILE and TLS_KEY_FILE are wrong (they cannot be read)',
  ]);
  t.same(problemsOf({ TLS_CERT_FILE: at('tls.pem'), TLS_KEY_FILE: at('tls-key.pem') }), []);
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
