/** `attest doctor` over a real installation, and what it says of each fault. */
import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { MAY_MOUNT, mountSmallDisk } from '../support/breaking/small-disk.js';
import { acknowledgement, newCreation, send } from '../support/calling/load.js';
import { runHere } from '../support/calling/run-cli.js';
import { makeServerTls } from '../support/certificates/server-tls.js';
import { BUCKET, bucketSetting, OWNER, startStore } from '../support/exports/s3/fixture.js';
import { setScene } from '../support/fault-fixture.js';
import { until } from '../support/until.js';

type Finding = { check: string; status: string; detail: string };

const scene = await setScene(t);
const { installation, servers, tsa, pool, apiKey } = scene;

async function examine(env: Record<string, string> = {}, args: readonly string[] = []) {
  const { code, stdout, stderr } = await runHere(['doctor', '--json', ...args], {
    env: { ...installation.env, BASE_URL: 'https://attest.example.com', ...env },
  });
  const findings = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Finding);
  const failed = findings.filter(({ status }) => status === 'failed');
  return {
    code,
    findings,
    failed,
    stderr,
    find: (check: string) => findings.find((one) => one.check === check),
  };
}

/** New keys for both environments. */
async function keyFiles(newKey: () => KeyObject): Promise<string> {
  await mkdir(t.testdirName, { recursive: true });
  const files = ['live', 'test'].map(async (environment) => {
    const file = join(t.testdirName, `${environment}-${randomUUID()}.pem`);
    await writeFile(file, newKey().export({ type: 'pkcs8', format: 'pem' }));
    return `${environment}=${file}`;
  });
  return (await Promise.all(files)).join(',');
}

t.test('before the first start nothing fails', async (t) => {
  const { code, failed, find } = await examine();
  t.same(failed, []);
  t.equal(code, 0);
  t.match(find('workers'), { status: 'warning', detail: /start attest worker/ });
  t.match(find('log'), { detail: /live\.log\.example\.com and test\.log\.example\.com/ });
  t.match(find('register'), { status: 'warning', detail: /made at the first start/ });
});

t.test('of a running installation nothing fails, for either process', async (t) => {
  const api = await installation.startApi();
  await installation.startWorker();
  const creation = newCreation();
  acknowledgement(creation, await send(api.baseUrl, apiKey, creation));
  await until('it is published', async () => {
    const { findings } = await examine();
    return findings.some(({ check, detail }) => check.startsWith('log ') && detail.includes('1 published'));
  });
  for (const process of ['api', 'worker']) {
    const { code, failed, find, stderr } = await examine({}, ['--process', process]);
    t.same([code, failed, stderr], [0, [], '']);
    t.match(find('settings'), { status: 'ok', detail: `valid for attest ${process}` });
    t.match(find('workers'), { status: 'ok', detail: '1 running' });
    t.match(find('witness foreign'), { status: 'ok', detail: /time stamp that verifies/ });
    t.match(find('statement keys live'), { status: 'ok', detail: /is held/ });
    t.match(find('sizes'), { detail: /^1 submissions/ });
  }
  const { stdout, code } = await runHere(['doctor'], { env: installation.env });
  t.equal(code, 0);
  t.match(stdout, /^ok {7}postgres {10}Postgres 18/m);
});

const NEW_SECRET = `k1:${Buffer.alloc(32, 9).toString('base64')}`;

t.test('each wrong setting fails its own check', async (t) => {
  const p256 = await keyFiles(() => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey);
  const ed25519 = await keyFiles(() => generateKeyPairSync('ed25519').privateKey);
  const cases: [string, Record<string, string>, Record<string, RegExp>][] = [
    ['SECRET_KEY', { SECRET_KEY: NEW_SECRET }, { 'secret key': /another key under the id k1/ }],
    [
      'DSSE_KEY_FILE',
      { DSSE_KEY_FILE: p256 },
      { 'statement keys live': /lacks the key that signs now/, 'statement keys test': /lacks the key/ },
    ],
    [
      'LOG_KEY_FILE',
      { LOG_KEY_FILE: ed25519 },
      {
        'log keys live.log.example.com ed25519': /does not hold/,
        'log keys test.log.example.com ed25519': /does not hold/,
      },
    ],
    ['LOG_DOMAIN', { LOG_DOMAIN: 'other.example.com' }, { log: /it cannot change/ }],
    ['NATS_URL', { NATS_URL: 'nats://127.0.0.1:1' }, { nats: /CONNECTION_REFUSED/ }],
    ['NATS_REPLICAS', { NATS_REPLICAS: '3' }, { nats: /is no cluster/ }],
    [
      'DATABASE_READ_URL of the primary',
      { DATABASE_READ_URL: installation.databaseUrl },
      { DATABASE_READ_URL: /is no replica/ },
    ],
    [
      'DATABASE_READ_URL of nothing',
      { DATABASE_READ_URL: 'postgres://u:p@127.0.0.1:1/d' },
      { DATABASE_READ_URL: /ECONNREFUSED/ },
    ],
    [
      'a socket without a process',
      { LOG_KEY_FILE: 'live=socket:/nowhere.sock#a,test=socket:/nowhere.sock#b' },
      { 'log keys': /the signing process at \/nowhere\.sock/ },
    ],
  ];
  for (const [name, env, wanted] of cases) {
    const { code, failed } = await examine(env);
    t.equal(code, 1, name);
    t.match(failed.map(({ check, detail }) => [check, detail]).sort(), Object.entries(wanted).sort(), name);
  }
});

t.test('settings that cannot be read are a line each, and nothing else is checked', async (t) => {
  const { code, findings } = await examine({
    WITNESS_DEADLINE: 'soon',
    SECRET_KEY: 'k1:short',
    PORT: '70000',
  });
  t.equal(code, 1);
  t.same(
    findings.map(({ check, status }) => `${check} ${status}`).sort(),
    ['PORT', 'SECRET_KEY', 'WITNESS_DEADLINE'].map((name) => `setting ${name} failed`),
  );
  t.notMatch(JSON.stringify(findings), /k1:short/, 'no secret is shown');
});

t.test('a register that holds another history, or cannot be written', async (t) => {
  const other = join(t.testdirName, 'register');
  await mkdir(join(other, 'live.log.example.com.checkpoint'), { recursive: true });
  const entry = `5-${'ab'.repeat(32)}-${'cd'.repeat(32)}`;
  await writeFile(join(other, 'live.log.example.com.checkpoint', entry), '');
  const foreign = await examine({ CHECKPOINT_REGISTER: other });
  t.match(foreign.failed, [{ check: 'log live.log.example.com', detail: /another installation/ }]);
  const file = join(t.testdirName, 'a-file');
  await writeFile(file, '');
  const blocked = await examine({ CHECKPOINT_REGISTER: file });
  t.equal(blocked.code, 1);
  t.match(blocked.find('register'), { status: 'failed', detail: /cannot be written/ });
});

t.test('a register that is not there is named, and not made', async (t) => {
  const other = join(t.testdirName, 'mistyped');
  const { failed } = await examine({ CHECKPOINT_REGISTER: other });
  t.match(failed, [{ check: 'log', detail: /mistyped is not there, and the logs have begun/ }]);
  t.notOk(existsSync(other));
});

t.test('a register in a bucket is raced, and what is wrong with the bucket is named', async (t) => {
  const server = await startStore(t);
  const register = (bucket: string) => bucketSetting(server.url, 'r', bucket);
  const { findings, find } = await examine({ CHECKPOINT_REGISTER: register(BUCKET) });
  t.match(find('register'), { status: 'ok', detail: /one writer won each of 10 races/ });
  t.notMatch(JSON.stringify(findings), new RegExp(OWNER.secretAccessKey.replace('+', '.')));
  const missing = await examine({ CHECKPOINT_REGISTER: register('missing') });
  t.match(missing.find('register'), { status: 'failed', detail: /bucket does not exist/ });
  t.equal(missing.code, 1);
});

if (MAY_MOUNT)
  t.test('a folder without space is named', async (t) => {
    const { path, fill } = await mountSmallDisk(t, 1);
    const withFolder = () => examine({ LOG_STORAGE: path });
    t.match((await withFolder()).find('log storage'), { status: 'ok', detail: /can be written/ });
    fill();
    const { find, code } = await withFolder();
    t.equal(code, 1);
    t.match(find('log storage'), { status: 'failed', detail: /cannot be written: ENOSPC/ });
    t.match(find(`disk ${path}`), { status: 'failed', detail: /^0 MiB free: make room/ });
  });

t.test('the storage of the public log is raced, and what it has of each log is compared', async (t) => {
  const server = await startStore(t);
  const storage = (bucket: string) => bucketSetting(server.url, 'p', bucket);
  const withStorage = (bucket = BUCKET) => examine({ LOG_STORAGE: storage(bucket) });
  const empty = await withStorage();
  t.match(empty.find('log storage'), { status: 'ok', detail: /one writer won each of 10 races/ });
  const ofLog = 'log storage live.log.example.com';
  t.match(empty.find(ofLog), { status: 'warning', detail: /^0 of [1-9]\d* published leaves; a worker/ });
  t.equal(empty.code, 0);
  installation.env.LOG_STORAGE = storage(BUCKET);
  const worker = await installation.startWorker();
  await until('it is stored', async () => (await withStorage()).find(ofLog)?.status === 'ok');
  await worker.kill();
  server.fail(({ operation, key }) =>
    operation === 'PutObject' && key.startsWith('p/doctor/')
      ? { kind: 'answer', with: (response) => response.writeHead(200, { etag: '"a"' }).end() }
      : undefined,
  );
  const careless = await withStorage();
  t.match(careless.find('log storage'), { status: 'failed', detail: /lose races/ });
  t.equal(careless.code, 1);
  server.fail(() => undefined);
  const missing = await withStorage('missing');
  t.match(missing.find('log storage'), { status: 'failed', detail: /bucket does not exist/ });
  const folder = join(t.testdirName, 'public');
  await mkdir(join(folder, 'log/live'), { recursive: true });
  const note =
    'live.log.example.com\n999\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n— live.log.example.com AAAAAAAA\n';
  await writeFile(join(folder, 'log/live/checkpoint'), note);
  const other = await examine({ LOG_STORAGE: folder });
  t.match(other.find(ofLog), { status: 'failed', detail: /has a checkpoint of size 999/ });
  delete installation.env.LOG_STORAGE;
});

t.test('a witness that fails, and one that is silent', async (t) => {
  tsa.mood = 'fails';
  t.match((await examine()).failed, [{ check: 'witness foreign', detail: /status 503/ }]);
  tsa.mood = 'answers';
  const [witness] = JSON.parse(installation.env.WITNESSES ?? '[]') as object[];
  const closed = { ...witness, name: 'closed', url: 'http://127.0.0.1:1' };
  const both = await examine({ WITNESSES: JSON.stringify([witness, closed]) });
  t.match(both.failed, [{ check: 'witness closed', detail: /ECONNREFUSED/ }]);
  t.match(both.find('witness foreign'), { status: 'ok' });
  const none = await examine({ WITNESSES: '[]' });
  t.match([none.code, none.find('witnesses')?.status], [0, 'warning']);
});

t.test('certificates', async (t) => {
  const tls = async (altName: string, days: number) => {
    const made = await makeServerTls(t, altName, days);
    const dir = t.testdir();
    await writeFile(join(dir, 'cert.pem'), made.tls.cert);
    await writeFile(join(dir, 'key.pem'), made.tls.key);
    return { TLS_CERT_FILE: join(dir, 'cert.pem'), TLS_KEY_FILE: join(dir, 'key.pem') };
  };
  const good = await examine(await tls('DNS:attest.example.com', 30));
  t.match(good.find('certificate'), { status: 'ok', detail: /valid for (29|30) more days/ });
  const soon = await examine(await tls('DNS:attest.example.com', 3));
  t.match(soon.find('certificate'), { status: 'warning', detail: /renew it/ });
  const other = await examine(await tls('DNS:other.example.com', 30));
  t.match(other.failed, [{ check: 'certificate', detail: /is not for attest\.example\.com/ }]);
});

t.test('a database whose clock differs, and one that is away or silent', async (t) => {
  await pool`
    CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
      $$ SELECT pg_catalog.clock_timestamp() + interval '1 minute' $$`;
  const { database } = (await pool<{ database: string }[]>`SELECT current_database() AS database`)[0] ?? {
    database: '',
  };
  await pool`ALTER DATABASE ${pool(database)} SET search_path = public, pg_catalog`;
  t.match((await examine()).failed[0], {
    check: 'clock',
    detail: /behind the database's: run an NTP client/,
  });
  await pool`ALTER DATABASE ${pool(database)} RESET search_path`;
  await pool`DROP FUNCTION public.clock_timestamp()`;
  t.same((await examine()).failed, []);
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  t.teardown(() => silent.close());
  const { port } = silent.address() as { port: number };
  for (const url of ['postgres://a:secret@127.0.0.1:1/x', `postgres://a:secret@127.0.0.1:${port}/x`]) {
    const away = await examine({ DATABASE_URL: url });
    t.equal(away.code, 1);
    t.match(away.find('postgres'), { status: 'failed', detail: /cannot be reached/ });
    t.ok(away.find('nats'), 'what needs no database is checked all the same');
    t.notOk(away.find('sizes'));
    t.notMatch(JSON.stringify(away.findings), /secret@/);
  }
  await servers.postgres.stop();
  t.match((await examine()).find('schema'), { status: 'failed' });
  await servers.postgres.start();
});

t.test('a database of a newer version is named', async (t) => {
  await pool`INSERT INTO migration (name) VALUES ('9999_later.sql')`;
  t.teardown(() => pool`DELETE FROM migration WHERE name = '9999_later.sql'`);
  const { find, code } = await examine();
  t.equal(code, 0);
  t.match(find('schema'), { status: 'warning', detail: /newer version \(it has 9999_later\.sql\)/ });
});

t.test('a database without tables', async (t) => {
  await pool`CREATE DATABASE empty`;
  const url = new URL(installation.databaseUrl);
  url.pathname = '/empty';
  const { failed } = await examine({ DATABASE_URL: url.href });
  t.match(failed, [{ check: 'schema', detail: /run attest migrate first/ }]);
  await rm(t.testdirName, { recursive: true, force: true });
});
