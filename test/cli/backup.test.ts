/** `attest backup verify` over a copy of a database that a service goes on after, damaged and forked. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { encodeVerifierKey, noteKey } from '../../src/proof/log/note.js';
import { connectPool, type Pool } from '../../src/server/database/connect.js';
import { migrate } from '../../src/server/database/migrate.js';
import { rawEd25519PublicKey } from '../../src/server/keys/secrets.js';
import { openBackup } from '../../src/server/process/backup-reader.js';
import { acknowledgement, newCreation, send } from '../support/calling/load.js';
import { runHere } from '../support/calling/run-cli.js';
import { setScene } from '../support/fault-fixture.js';
import { startService } from '../support/servers/installation.js';
import { until } from '../support/until.js';

type LogJson = {
  origin: string;
  leaves: number;
  missing: number | null;
  problems: string[];
  unchecked: string | null;
};

const scene = await setScene(t);
const { installation, servers, apiKey } = scene;
const LEAVES = 300;
const LATER = 20;

const open = (database: string): Pool => {
  const url = new URL(servers.postgres.url);
  url.pathname = `/${database}`;
  return connectPool({ url: url.href, name: 'test', max: 1, statementTimeoutMs: 60_000 });
};
const urlOf = (database: string) =>
  Object.assign(new URL(installation.databaseUrl), { pathname: `/${database}` }).href;

async function useDatabase<T>(database: string, use: (pool: Pool) => Promise<T>): Promise<T> {
  const pool = open(database);
  try {
    return await use(pool);
  } finally {
    await pool.end({ timeout: 1 });
  }
}

const copy = (from: string, to: string) =>
  useDatabase('postgres', (pool) => pool`CREATE DATABASE ${pool(to)} TEMPLATE ${pool(from)}`);

async function submit(baseUrl: string, count: number): Promise<void> {
  for (let at = 0; at < count; at += 10) {
    const creations = Array.from({ length: Math.min(10, count - at) }, () => newCreation());
    for (const creation of creations) acknowledgement(creation, await send(baseUrl, apiKey, creation));
  }
}

/** Until everything is published: the size of the log that has leaves. */
async function published(database: string, size: number): Promise<void> {
  await useDatabase(database, (pool) =>
    until('everything is published', async () => {
      const rows = await pool`SELECT FROM batch WHERE tree_size = ${size} AND registered_at IS NOT NULL`;
      return rows.length > 0;
    }),
  );
}

const database = new URL(installation.databaseUrl).pathname.slice(1);
let api = await installation.startApi();
let worker = await installation.startWorker();
await submit(api.baseUrl, LEAVES);
await published(database, LEAVES);
await Promise.all([api.stop(), worker.stop(), scene.pool.end({ timeout: 1 })]);
await copy(database, 'drill');
api = await installation.startApi();
worker = await installation.startWorker();
await submit(api.baseUrl, LATER);
await published(database, LEAVES + LATER);

async function verify(name: string, args: readonly string[] = ['--verify-url', `${api.baseUrl}/verify`]) {
  const env = { DATABASE_URL: urlOf(name) };
  const { code, stdout, stderr } = await runHere(['backup', 'verify', '--json', ...args], { env });
  const logs = stdout === '' ? [] : (JSON.parse(stdout) as { logs: LogJson[] }).logs;
  return { code, stderr, log: logs.find(({ leaves }) => leaves > 0), logs };
}

t.test('a backup that lacks the newest leaves contradicts nothing', async (t) => {
  const { code, stderr, log, logs } = await verify('drill');
  t.same([code, stderr, logs.length], [0, '', 2]);
  t.match(log, { leaves: LEAVES, missing: LATER, problems: [], unchecked: null });
  const { stdout } = await runHere(['backup', 'verify', '--verify-url', `${api.baseUrl}/verify`], {
    env: { DATABASE_URL: urlOf('drill') },
  });
  t.match(
    stdout,
    /contradicts nothing, lacks 20 of 320 published leaves \(300 leaves, \d+ batches, the newest of 20/,
  );
  t.match(await verify(database), { code: 0, log: { missing: 0, problems: [] } }, 'the database itself');
});

t.test('a database that goes on meanwhile contradicts nothing', async (t) => {
  await useDatabase(database, async (pool) => {
    const reader = await openBackup(pool);
    const log = (await reader.list()).find(({ leaves }) => leaves > 0)!;
    const size = log.leaves + LATER;
    await submit(api.baseUrl, LATER);
    await published(database, size);
    t.same((await reader.derive(log, [], () => {})).problems, []);
    await pool`UPDATE tile SET hashes = hashes || '\\x00' WHERE level = 0 AND tile_index = 1`;
    t.match((await reader.derive(log, [], () => {})).problems, [/the tile of leaves 256 to/]);
    await pool`UPDATE tile SET hashes = substr(hashes, 1, length(hashes) - 1) WHERE level = 0 AND tile_index = 1`;
  });
});

t.test('the newest batch must not be older than --max-age', async (t) => {
  const args = ['--verify-url', `${api.baseUrl}/verify`, '--max-age'];
  t.equal((await verify('drill', [...args, '1h'])).code, 0);
  const now = () => new Date(Date.now() + 2 * 3_600_000);
  const late = await runHere(['backup', 'verify', ...args, '1h'], {
    env: { DATABASE_URL: urlOf('drill') },
    now,
  });
  t.match(late, { code: 4, stdout: /older than 1h/ });
  t.match(await verify('drill', [...args, 'soon']), { code: 2, stderr: /--max-age/ });
});

const DAMAGE: Record<string, [string, RegExp]> = {
  'a hash of a leaf': [
    `UPDATE submission SET leaf_hash = '\\x${'00'.repeat(32)}' WHERE log_index = 17`,
    /stored hashes of leaves 0 to 255/,
  ],
  'an artifact': [
    `UPDATE submission SET artifact_sha256 = '\\x${'00'.repeat(32)}' WHERE log_index = 270`,
    /leaves 256 to 299|have the root/,
  ],
  'a time': [
    "UPDATE submission SET submitted_at = submitted_at + interval '1 second' WHERE log_index = 3",
    /have the root/,
  ],
  'a tile': [
    `UPDATE tile SET hashes = overlay(hashes PLACING '\\x00000000' FROM 5) WHERE level = 0 AND tile_index = 0`,
    /the tile of leaves 0 to 255/,
  ],
  'a root': [
    `UPDATE batch SET root_hash = '\\x${'11'.repeat(32)}' WHERE tree_size = ${LEAVES}`,
    /batch btc_.* says ERER/,
  ],
  'a checkpoint': [
    `UPDATE batch SET note = (SELECT note FROM batch ORDER BY tree_size LIMIT 1) WHERE tree_size = ${LEAVES}`,
    /the checkpoint of batch btc_.* is another one/,
  ],
};

t.test('each kind of damage is found', async (t) => {
  for (const [what, [statement, wanted]] of Object.entries(DAMAGE)) {
    await copy('drill', 'damaged');
    await useDatabase('damaged', (pool) => pool.unsafe(statement));
    const { code, log } = await verify('damaged');
    t.equal(code, 1, what);
    t.match(log?.problems.join('\n'), wanted, what);
    await useDatabase('postgres', (pool) => pool`DROP DATABASE damaged`);
  }
});

t.test('a row that is missing is named', async (t) => {
  await copy('drill', 'gap');
  await useDatabase('gap', (pool) => pool`DELETE FROM submission WHERE log_index = 100`);
  const { code, stderr } = await verify('gap');
  t.not(code, 0);
  t.match(stderr, /has only 255 of the entries 0 to 256/);
});

t.test('a backup that a service was started over is a fork', async (t) => {
  await copy('drill', 'fork');
  const env = { ...installation.env, DATABASE_URL: urlOf('fork'), CHECKPOINT_REGISTER: t.testdir() };
  await mkdir(env.CHECKPOINT_REGISTER, { recursive: true });
  const other = await startService(t, 'api', env);
  await submit(other.baseUrl, 5);
  await other.stop();
  const { code, log } = await verify('fork');
  t.equal(code, 1);
  t.match(log?.problems, [`its ${LEAVES + 5} leaves are not the first ones of the published log`]);
});

t.test('another service, and a published log that is away', async (t) => {
  const dir = t.testdir();
  await mkdir(dir, { recursive: true });
  const roots = (await (await fetch(`${api.baseUrl}/verify/trust_roots.json`)).json()) as {
    transparency_logs: { origin: string; verifier_key: string; url: string }[];
  };
  const write = async (change: (origin: string) => object) => {
    const file = join(dir, 'roots.json');
    const logs = roots.transparency_logs.map((log) => ({ ...log, ...change(log.origin) }));
    await writeFile(file, JSON.stringify({ ...roots, transparency_logs: logs }));
    return ['--trust-roots', file];
  };
  const { publicKey } = generateKeyPairSync('ed25519');
  const withKey = (origin: string) => ({
    origin,
    verifier_key: encodeVerifierKey(noteKey(origin, rawEd25519PublicKey(publicKey))),
    public_key_pem: publicKey.export({ type: 'spki', format: 'pem' }),
    ml_dsa_verifier_key: '',
  });
  const renamed = await verify('drill', await write((origin) => withKey(`other-${origin}`)));
  t.match(renamed, { code: 2, log: { unchecked: /trust roots do not have it/ } });
  const rekeyed = await verify('drill', await write(withKey));
  t.match(rekeyed, { code: 1, log: { problems: [/its key is not that of the trust roots/] } });
  const away = await verify('drill', await write(() => ({ url: 'http://127.0.0.1:1' })));
  t.match(away, { code: 2, log: { unchecked: /cannot be fetched/ } });
});

t.test('a database without a log', async (t) => {
  await useDatabase('postgres', (pool) => pool`CREATE DATABASE blank`);
  t.match(await verify('blank'), { code: 2, stderr: /run attest migrate first/ });
  await useDatabase('blank', (pool) => migrate(pool));
  t.match(await verify('blank'), { code: 2, stderr: /has no log: is DATABASE_URL/ });
  t.match(await verify('drill', []), { code: 2, stderr: /--trust-roots/ });
});
