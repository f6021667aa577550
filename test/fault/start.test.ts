/** Processes that cannot start: they say why in one line, and end. */
import { createSecretKey, generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { AuditAction } from '../../gen/attestation/admin/v1/audit_pb.js';
import { COSIGNATURE_V1_KEY, encodeVerifierKey, noteKey } from '../../src/proof/log/note.js';
import { connectPool, type Pool } from '../../src/server/database/connect.js';
import { insertExport, stopExport } from '../../src/server/exports/store/exports.js';
import { decryptSecret, encryptSecret } from '../../src/server/keys/encryption.js';
import { deriveKeyRing, formatSecretKey } from '../../src/server/keys/key-ring.js';
import { makeProject } from '../../src/server/process/first-keys.js';
import { ed25519 } from '../proof/sample.js';
import { runProcess } from '../support/calling/run-cli.js';
import { makeInstallation, makeUnlimitedKey } from '../support/servers/installation.js';
import { testDatabase } from '../support/servers/shared-servers.js';
import { until } from '../support/until.js';

const installation = await makeInstallation(t);
const { databaseUrl } = installation;
await (await installation.startWorker()).stop();
const dir = t.testdir();

function newKey(name: string, type: 'ec' | 'ed25519'): string {
  const { privateKey } =
    type === 'ec' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('ed25519');
  const file = join(dir, name);
  writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  return file;
}

t.test('a process whose settings contradict the database ends with exit code 1 and one line', async (t) => {
  const [live, test] = (installation.env.DSSE_KEY_FILE ?? '').split(',');
  const swapped = `live=${test?.slice('test='.length)},test=${live?.slice('live='.length)}`;
  const logKeys = `live=${newKey('log-live.pem', 'ed25519')},test=${newKey('log-test.pem', 'ed25519')}`;
  const both = ['api', 'worker'];
  const cases: [roles: string[], env: Record<string, string>, line: RegExp][] = [
    [
      both,
      { LOG_DOMAIN: 'other.example.com' },
      /^error: LOG_DOMAIN cannot change: the log is live\.log\.example/,
    ],
    [
      both,
      { LOG_DOMAIN: '', DATABASE_URL: await testDatabase(t) },
      /^error: LOG_DOMAIN is not set, and the database has no log yet: set it, .* such as log\.example\.com; .*\n$/,
    ],
    [
      both,
      { LOG_KEY_FILE: logKeys },
      /^error: LOG_KEY_FILE does not hold the key that the log live\.log\.example/,
    ],
    [
      both,
      { DATABASE_URL: await testDatabase(t, { empty: true }) },
      /^error: the database lacks 0001_initial\.sql, 0002_build\.sql, .*: run attest migrate first\n$/,
    ],
    [
      both,
      { DATABASE_URL: 'postgres://nobody:hunter2@127.0.0.1:9/none' },
      /^error: the database cannot be reached: connect ECONNREFUSED 127\.0\.0\.1:9\n$/,
    ],
  ];
  for (const [roles, env, line] of cases) {
    for (const role of roles) {
      const ended = await runProcess([role, '--ops-port', '0'], { ...installation.env, PORT: '0', ...env });
      t.match(ended, { code: 1, stdout: '', stderr: line }, `${role} ${Object.keys(env)}`);
    }
  }
  const api = await installation.startApi();
  await api.stop();
  const env = { ...installation.env, PORT: '0', DSSE_KEY_FILE: swapped };
  const ended = await runProcess(['api', '--ops-port', '0'], env);
  t.match(ended, {
    code: 1,
    stderr: /^error: DSSE_KEY_FILE holds the key of another environment for live\n$/,
  });
});

t.test('without LOG_DOMAIN the existing logs continue, and their domain is logged', async (t) => {
  const env = { ...installation.env };
  installation.env.LOG_DOMAIN = '';
  t.teardown(() => Object.assign(installation.env, env));
  for (const start of [installation.startApi, installation.startWorker]) {
    const { stop, lines } = await start();
    const line = /^LOG_DOMAIN is not set: .*; set it to log\.example\.com$/;
    await until('its log says so', () => lines.some(({ msg }) => line.test(msg)));
    await stop();
  }
});

t.test('a worker without a witness for live warns in its log and on /readyz, and works', async (t) => {
  const witnessOf = (environment: string) => {
    const witness = { name: environment, kind: 'log_witness', url: 'https://127.0.0.1:9/', required: false };
    const key = noteKey('w.example', ed25519().publicKey, COSIGNATURE_V1_KEY);
    return JSON.stringify([
      { ...witness, environments: [environment], verifier_key: encodeVerifierKey(key) },
    ]);
  };
  const env = { ...installation.env };
  t.teardown(() => Object.assign(installation.env, { WITNESSES: '[]' }, env));
  const warning = /^nobody but this service vouches for the live log/;
  for (const [witnesses, warns] of [
    ['[]', true],
    [witnessOf('test'), true],
    [witnessOf('live'), false],
  ] as const) {
    Object.assign(installation.env, { WITNESSES: witnesses });
    const { stop, lines, opsUrl } = await installation.startWorker();
    const answers = await Promise.all(['readyz', 'readyz/live'].map((path) => fetch(`${opsUrl}/${path}`)));
    for (const answer of answers) {
      t.equal(answer.status, 200);
      const { reasons = [] } = (await answer.json()) as { reasons?: { name: string; reason: string }[] };
      t.equal(
        reasons.some(({ name, reason }) => name === 'witnesses' && warning.test(reason)),
        warns,
        witnesses,
      );
    }
    // Its log is complete once it has ended.
    await stop();
    t.equal(lines.filter(({ level, msg }) => level === 'warn' && warning.test(msg)).length, warns ? 1 : 0);
  }
});

function openDatabase(t: Test) {
  const pool = connectPool({ url: databaseUrl, name: 'test', max: 2, statementTimeoutMs: 10_000 });
  t.teardown(() => pool.end());
  return pool;
}

const secretKey = (id: string, byte: number) => formatSecretKey(id, Buffer.alloc(32, byte));
const FIRST = secretKey('k1', 7);

t.test('a SECRET_KEY unknown to the database is rejected with advice', async (t) => {
  const start = (role: string, SECRET_KEY: string) =>
    runProcess([role, '--ops-port', '0'], { ...installation.env, PORT: '0', SECRET_KEY });
  const cases: [keys: string, line: RegExp][] = [
    [
      secretKey('k1', 8),
      /^error: SECRET_KEY has another key under the id k1 .* attest secret-keys forget k1 first\n$/,
    ],
    [`${secretKey('k2', 8)},${secretKey('k1', 9)}`, /^error: SECRET_KEY has another key under the id k1 /],
    [
      secretKey('k2', 8),
      /^error: SECRET_KEY holds none of the keys that this database was used with \(k1\): .*\n$/,
    ],
    [secretKey('other', 7), /^error: SECRET_KEY holds none of the keys /],
  ];
  const refused = cases.map(async ([keys, stderr], i) => {
    t.match(await start(i % 2 === 0 ? 'api' : 'worker', keys), { code: 1, stdout: '', stderr });
  });
  await Promise.all(refused);
});

function encryptionRing(id: string, byte: number) {
  return deriveKeyRing([{ id, key: createSecretKey(Buffer.alloc(32, byte)) }], 'encryption');
}

async function makeExports(pool: Pool, { ids, key, byte }: { ids: string[]; key: string; byte: number }) {
  const projectId = await makeProject(pool, 'p');
  const row = { projectId, environment: 1, destination: {}, schema: null, compression: 1, start: 1 };
  for (const id of ids) {
    const secrets = encryptSecret(encryptionRing(key, byte), `{"secretAccessKey":"${id}"}`, id);
    await pool.begin((tx) => insertExport(tx, { ...row, id, secrets }, 50));
  }
}

t.test('SECRET_KEY is rotated by a new key before the old, which is left out later', async (t) => {
  const before = installation.env.SECRET_KEY!;
  t.teardown(() => {
    installation.env.SECRET_KEY = before;
  });
  const pool = openDatabase(t);
  const ids = ['exp_1', 'exp_2', 'exp_3'];
  await makeExports(pool, { ids, key: 'k1', byte: 7 });
  await makeExports(pool, { ids: ['exp_lost'], key: 'lost', byte: 9 });
  await pool.begin((tx) => stopExport(tx, 'exp_3'));
  const list = async () => {
    const { stdout } = await runProcess(['secret-keys', 'list', '--json'], installation.env);
    return JSON.parse(stdout);
  };
  t.match(await list(), [{ id: 'k1', webhooks: 0, exports: 2 }]);
  for (const keys of [`${secretKey('k2', 8)},${FIRST}`, FIRST, `${secretKey('k2', 8)},${FIRST}`]) {
    installation.env.SECRET_KEY = keys;
    await (await installation.startWorker()).stop();
  }
  t.match(await list(), [
    { id: 'k1', webhooks: 0, exports: 0 },
    { id: 'k2', webhooks: 0, exports: 2 },
  ]);
  installation.env.SECRET_KEY = secretKey('k2', 8);
  await (await installation.startWorker()).stop();
  const rows = await pool`SELECT id, secrets FROM export WHERE status <> 3 ORDER BY id`;
  for (const { id, secrets } of rows) {
    const [key, byte] = id === 'exp_lost' ? (['lost', 9] as const) : (['k2', 8] as const);
    t.equal(decryptSecret(encryptionRing(key, byte), secrets, id), `{"secretAccessKey":"${id}"}`);
  }
});

t.test('a lost key can be forgotten, with an audit entry, and any other is accepted then', async (t) => {
  const wrong = await runProcess(['secret-keys', 'forget', 'k9'], installation.env);
  t.match(wrong, { code: 1, stderr: 'error: no key k9 is known; see attest secret-keys list\n' });
  for (const id of ['k1', 'k2']) {
    const { code, stdout } = await runProcess(['secret-keys', 'forget', id], installation.env);
    t.match({ code, stdout }, { code: 0, stdout: `forgot ${id}\n` });
  }
  const pool = openDatabase(t);
  t.match(
    await pool`SELECT resource_id AS id FROM audit_entry WHERE action = ${AuditAction.SECRET_KEY_FORGOTTEN} ORDER BY id`,
    [{ id: 'k1' }, { id: 'k2' }],
  );
  await (await installation.startWorker()).stop();
  t.match(await runProcess(['secret-keys', 'list'], installation.env), { stdout: /^ID .*\nk1 .* 0\n$/ });
});

t.test('webhooks are counted by the key that encrypts their secret', async (t) => {
  const pool = openDatabase(t);
  const projectId = await makeProject(pool, 'p');
  const ring = (id: string) => encryptionRing(id, 7);
  for (const [id, key] of [
    ['whk_1', 'k1'],
    ['whk_2', 'k1'],
    ['whk_3', 'gone'],
  ] as const) {
    const secret = encryptSecret(ring(key), 'whsec_x', id);
    await pool`
      INSERT INTO webhook (id, project_id, environment, url, events, secret)
      VALUES (${id}, ${projectId}, 1, 'https://example.com', '{1}', ${secret})`;
  }
  const before = encryptSecret(ring('k1'), 'whsec_x', 'whk_3');
  await pool`
    UPDATE webhook SET previous_secret = secret, previous_secret_until = clock_timestamp() - interval '1 minute',
      older_secrets = ARRAY[${before}::bytea], older_secrets_until = ARRAY[clock_timestamp() + interval '1 hour']
    WHERE id = 'whk_3'`;
  const { stdout } = await runProcess(['secret-keys', 'list', '--json'], installation.env);
  t.match(JSON.parse(stdout), [{ id: 'k1', webhooks: 3 }]);
});

t.test('a process whose DSSE key expires stops signing before statements lose trust', async (t) => {
  const pool = openDatabase(t);
  const key = await makeUnlimitedKey(pool);
  const api = await installation.startApi();
  const create = async () => {
    const body = {
      artifact: { sha256: '0'.repeat(64) },
      metadata: { schema: 'purl', purl: 'pkg:npm/a@1' },
    };
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    return fetch(`${api.baseUrl}/v1/attestations`, { method: 'POST', headers, body: JSON.stringify(body) });
  };
  t.equal((await create()).status, 201);
  await pool`UPDATE dsse_key SET valid_to = clock_timestamp() + interval '1 hour'`;
  await (await installation.startApi()).stop();
  t.equal((await create()).status, 201, 'until shortly before it may be started, and signs');
  await pool`UPDATE dsse_key SET valid_to = clock_timestamp() + interval '1 minute'`;
  await until('creates are refused', async () => (await create()).status === 503);
  const ready = await fetch(`${api.opsUrl}/readyz`);
  t.equal(ready.status, 503);
  t.match(await ready.text(), /the DSSE key \d of live is trusted only until 20.*: rotate to another one/);
  await api.stop();
  const ended = await runProcess(['api', '--ops-port', '0'], { ...installation.env, PORT: '0' });
  t.match(ended, {
    code: 1,
    stderr: /^error: the DSSE key \d of live is trusted only until 20/,
  });
});
