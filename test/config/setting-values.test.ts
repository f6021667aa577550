/** Values of single settings, valid and invalid. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import t from 'tap';
import { type ConfigByCommand, readConfig } from '../../src/config/config.js';
import { KEY, OPEN_LIMITS, problemsOf, server } from './samples.js';

const NO_SIGNAL = { traces: false, metrics: false, logs: false, metricIntervalMs: 60_000 };
const EVERY_SIGNAL = { ...NO_SIGNAL, traces: true, metrics: true, logs: true };

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
    ['LOG_STORAGE', '/r', 'logStorage', { folder: '/r' }],
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
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://otel:4318', 'telemetry', EVERY_SIGNAL],
    ['OTEL_EXPORTER_OTLP_LOGS_ENDPOINT', 'https://otel/v1/logs', 'telemetry', { ...NO_SIGNAL, logs: true }],
    ['OTEL_TRACES_SAMPLER', 'always_on', 'telemetry', undefined],
    ['DATABASE_URL', 'postgresql://h', 'databaseUrl', 'postgresql://h'],
    [
      'DATABASE_URL',
      'postgres://u:p@a:1/db?sslmode=require',
      'databaseUrl',
      'postgres://u:p@a:1/db?sslmode=require',
    ],
    ['DATABASE_READ_URL', 'postgres://u:p@b/d', 'databaseReadUrl', 'postgres://u:p@b/d'],
    ['LOGS', 'live:4', 'logLanes', { live: 4, test: 1 }],
    ['LOGS', 'test:64,live:2', 'logLanes', { live: 2, test: 64 }],
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
    [
      'OIDC_ISSUER',
      'login.example.com',
      'http://login.example.com',
      'https://a.example/?x',
      'https://a.example/#x',
    ],
    ['OIDC_SCOPES', 'email profile', 'openid "x"'],
    ['OIDC_OPERATORS', 'alice', 'email=', '=x', 'email=*', 'sub=**', 'groups=a,b'],
    ['OIDC_CLIENT_ID', 'a\nb'],
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
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318', 'grpc://collector:4317', 'x'],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', '/v1/traces'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', 'http/json'],
    ['OTEL_METRICS_EXPORTER', 'prometheus'],
    ['OTEL_TRACES_SAMPLER', 'xray'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.1', '-0.1', '1%', '1e-2', '.'],
    ['OTEL_METRIC_EXPORT_INTERVAL', '60s', '99'],
    ['OTEL_SDK_DISABLED', 'yes'],
    ['PG_POOL', '1', '501'],
    ['EXPORT_SPOOL_MIB', '63', '1048577'],
    ['MAX_CONNECTIONS', '0', '-1', 'many'],
    ['MAX_BODY_MIB', '3'],
    ['TRUSTED_PROXIES', 'proxy.example', '10.0.0.0/33', '10.0.0.0/8/8', '10.0.0.0/', ',', '::1/129'],
    ['DATABASE_READ_URL', 'mysql://h/d', 'postgres://a,b/d', 'postgres://u:p@a:1,b:2/d'],
    [
      'LOGS',
      '4',
      'live',
      'live:0',
      'live:65',
      'live:04',
      'live:1e1',
      'other:2',
      'live:2,live:3',
      'live:2,',
      'LIVE:2',
    ],
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
    [
      'TUF_KEY_FILE',
      at('dsse-live.pem'),
      at('nowhere.pem'),
      at('broken.pem'),
      at('big.json'),
      `live=${at('log-live.pem')}`,
    ],
    [
      'TUF_KEY_FILE',
      `${at('log-live.pem')},${at('log-live.pem')}`,
      `${at('log-live.pem')},`,
      'socket:/run/signer.sock',
    ],
    ['TUF_KEY_FILE', Array.from({ length: 9 }, (_, i) => `socket:/run/signer.sock#k${i}`).join(',')],
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

t.test('an identity provider is read as a whole, and its secret is never quoted', async (t) => {
  const given = {
    OIDC_ISSUER: 'https://login.example.com/tenant/',
    OIDC_CLIENT_ID: 'attest',
    OIDC_CLIENT_SECRET: 'hunter2',
    OIDC_OPERATORS: 'groups=platform, email=*@ops.example.com',
  };
  t.same(readConfig(given, { process: 'up' }).oidc, {
    issuer: 'https://login.example.com/tenant/',
    clientId: 'attest',
    clientSecret: 'hunter2',
    scopes: 'openid email profile',
    name: 'login.example.com',
    operators: [
      { claim: 'groups', pattern: 'platform' },
      { claim: 'email', pattern: '*@ops.example.com' },
    ],
  });
  t.equal(readConfig({ OIDC_ISSUER: '' }, { process: 'up' }).oidc, undefined);
  t.equal(
    readConfig({ ...given, OIDC_ISSUER: 'http://localhost:8080' }, { process: 'up' }).oidc?.name,
    'localhost:8080',
  );
  const { OIDC_ISSUER, ...without } = given;
  t.match(problemsOf(without), [/^OIDC_CLIENT_ID is set/]);
  t.match(problemsOf({ OIDC_ISSUER }), [/^OIDC_CLIENT_ID is not set/, /^OIDC_CLIENT_SECRET is not set/]);
  t.notMatch(problemsOf({ ...given, OIDC_CLIENT_SECRET: 'hunter\n2' }).join(), 'hunter');
});
