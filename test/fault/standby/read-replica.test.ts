/** No primary responds: reads come from the synchronous standby, and show every acknowledged write. */
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { connectPool, type Pool } from '../../../src/server/database/connect.js';
import { openReadReplica, type ReadReplica } from '../../../src/server/database/read-replica.js';
import { type Link, startLink } from '../../support/breaking/link.js';
import { newCreation } from '../../support/calling/load.js';
import { runHere } from '../../support/calling/run-cli.js';
import { makeInstallation, makeUnlimitedKey } from '../../support/servers/installation.js';
import { testServers } from '../../support/servers/shared-servers.js';
import { type StandbyPair, startStandbyPair } from '../../support/standby/standby-pair.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';
import { startFaultTsa } from '../../support/witnesses/fault-tsa.js';

/** A link to the primary, as a process sees it, and the URL of it. */
async function linkTo(t: Test, { url }: StandbyPair): Promise<{ link: Link; url: string }> {
  const linked = new URL(url);
  const link = await startLink({ host: '127.0.0.1', port: Number(linked.port) });
  t.teardown(link.close);
  linked.port = String(link.port);
  return { link, url: linked.href };
}

async function scene(t: Test, pair: StandbyPair) {
  const { link, url } = await linkTo(t, pair);
  const pool = connectPool({ url, name: 'test', max: 4, statementTimeoutMs: 5_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  const reasons: (string | undefined)[] = [];
  const replica = openReadReplica({
    url,
    readUrl: pair.standbyUrl,
    max: 4,
    statementTimeoutMs: 5_000,
    onChange: (reason) => reasons.push(reason),
  });
  t.teardown(replica.close);
  return { link, pool, replica, reasons, reads: replica.readsOf(pool) };
}

/**
 * Waits until so many watches of replicas have asked a server since the call, and have its answer: a watch asks again once
 * it has.
 */
async function untilAsked(server: Pool, by: 'attest primary' | 'attest replica', watches = 1): Promise<void> {
  for (const what of ['asks', 'asks again']) {
    const [{ since } = {}] = await server<{ since: Date }[]>`SELECT clock_timestamp() AS since`;
    await until(`${by} ${what}`, async () => {
      const rows = await server`
        SELECT FROM pg_stat_activity
        WHERE application_name = ${by} AND state = 'idle' AND query LIKE '%pg_control_system%'
          AND query_start > ${since ?? null}::timestamptz`;
      return rows.length >= watches;
    });
  }
}

const untilAway = (replica: ReadReplica, isAway = true) =>
  until('it has noticed', async () => (replica.reason() !== undefined) === isAway);

t.test('a read shows what was acknowledged before it, however late the standby applies it', async (t) => {
  const pair = await startStandbyPair(t);
  const { link, replica, reads, reasons } = await scene(t, pair);
  const count = async () => (await reads`SELECT max(n) AS n FROM written`)[0]?.n;
  await pair.primary`CREATE TABLE written (n integer)`;
  await pair.primary`CREATE TABLE blocked ()`;
  await pair.primary`INSERT INTO written VALUES (0)`;
  await until('the primary is asked', async () => (await count()) === 0);
  await untilAsked(pair.primary, 'attest primary');
  for (const mode of ['refuses', 'stalls'] as const) {
    const startedMs = performance.now();
    link.set(mode);
    await untilAway(replica);
    t.ok(performance.now() - startedMs < 5_000, `${mode}: noticed`);
    const [{ isStandby } = {}] = await reads`SELECT pg_is_in_recovery() AS "isStandby"`;
    t.equal(isStandby, true);
    let late: Promise<unknown> | undefined;
    await pair.standby.begin(async (tx) => {
      // The standby applies nothing while a reader has the table that is rewritten.
      await tx`SELECT FROM blocked`;
      await pair.primary`ALTER TABLE blocked ADD COLUMN ${pair.primary(`c_${mode}`)} integer`;
      await pair.primary`INSERT INTO written SELECT max(n) + 1 FROM written`;
      late = count();
      await delay(300);
      t.equal((await tx`SELECT pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn() AS is`)[0]?.is, true);
    });
    const wanted = (await pair.primary`SELECT max(n) AS n FROM written`)[0]?.n;
    t.equal(await late, wanted, 'also while the standby applies nothing');
    for (let n = wanted + 1; n < wanted + 50; n++) {
      await pair.primary`INSERT INTO written VALUES (${n})`;
      const seen = await Promise.all([count(), count(), reads.unsafe('SELECT max(n) AS n FROM written')]);
      t.same([seen[0], seen[1], seen[2]?.[0]?.n], [n, n, n]);
    }
    link.set('passes');
    link.cut('reset');
    await untilAway(replica, false);
  }
  t.equal(reasons.length, 4);
});

t.test('what a primary that fell silent has not answered fails once that is noticed', async (t) => {
  const pair = await startStandbyPair(t);
  const { link, replica, reads } = await scene(t, pair);
  await untilAsked(pair.primary, 'attest primary');
  const slow = reads`SELECT pg_sleep(60)`.catch((error: unknown) => error);
  const done = await reads`SELECT 1 AS one`;
  link.set('stalls');
  const late = reads`SELECT 2`.catch((error: unknown) => error);
  await untilAway(replica);
  t.match(await Promise.all([slow, late]), [{ code: 'NO_PRIMARY' }, { code: 'NO_PRIMARY' }]);
  t.same([done, await reads`SELECT 1 AS one`], [[{ one: 1 }], [{ one: 1 }]]);
});

t.test('fragments go to the server of their statement', async (t) => {
  const pair = await startStandbyPair(t);
  const { link, replica, reads } = await scene(t, pair);
  await untilAsked(pair.primary, 'attest primary');
  const before = reads`n > ${1}`;
  link.set('refuses');
  await untilAway(replica);
  const after = reads`n < ${3}`;
  t.same(await reads`SELECT n FROM generate_series(1, 5) n WHERE ${before} AND ${after}`, [{ n: 2 }]);
});

t.test('a server that lacks what the primary had serves nothing', async (t) => {
  const WATCHES = 3;
  const [pair, other] = [await startStandbyPair(t), await startStandbyPair(t)];
  const { link, url } = await linkTo(t, pair);
  const open = (readUrl: string) => {
    const replica = openReadReplica({ url, readUrl, max: 1, statementTimeoutMs: 1_000, onChange: () => {} });
    t.teardown(replica.close);
    return replica;
  };
  const right = open(pair.standbyUrl);
  const foreign = open(other.standbyUrl);
  const none = open('postgres://u:p@127.0.0.1:9/d');
  await untilAsked(pair.primary, 'attest primary', WATCHES);
  await pair.primary`CREATE TABLE more (n integer)`;
  pair.takeStandbyAway();
  // It is written and not replicated: the commit waits.
  const waiting = pair.primary`INSERT INTO more VALUES (1)`.execute();
  await pair.untilCommitsWait();
  await untilAsked(pair.primary, 'attest primary', WATCHES);
  link.set('refuses');
  await untilAsked(pair.standby, 'attest replica');
  await untilAsked(other.standby, 'attest replica');
  t.equal(right.reason(), undefined, 'it is behind');
  t.equal(foreign.reason(), undefined);
  t.equal(none.reason(), undefined);
  await pair.bringStandbyBack();
  await waiting;
  await untilAway(right);
  t.equal(foreign.reason(), undefined);
});

t.test('an API process serves reads while there is no primary, and goes on with the next', async (t) => {
  const pair = await startStandbyPair(t);
  const { link, url } = await linkTo(t, pair);
  const { natsUrl } = await testServers();
  const tsa = await startFaultTsa(t);
  const installation = await makeInstallation(t, {
    servers: { databaseUrl: url, natsUrl },
    env: { WITNESSES: JSON.stringify([tsa.setting('foreign')]), DATABASE_READ_URL: pair.standbyUrl },
  });
  const pool = installation.openPool();
  const [apiKey, otherKey] = [await makeUnlimitedKey(pool), await makeUnlimitedKey(pool)];
  const [api] = [await installation.startApi(), await installation.startWorker()];
  const call = async (
    method: string,
    path: string,
    { body, key = apiKey }: { body?: object; key?: string } = {},
  ) => {
    const answer = await fetch(api.baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, text, headers: answer.headers };
  };
  const sha256 = newCreation().artifactSha256;
  const metadata = { schema: 'purl', purl: 'pkg:npm/a-test@1.0.0' };
  const create = () => call('POST', '/v1/attestations', { body: { artifact: { sha256 }, metadata } });
  const { id } = JSON.parse((await create()).text);
  await untilWitnessed(pool);
  const batch = JSON.parse((await call('GET', `/v1/attestations/${id}`)).text).batch_id;
  const readPaths = [
    `/v1/attestations/${id}`,
    `/v1/attestations/${id}/bundle`,
    `/v1/attestations/${id}/bundle.sigstore.json`,
    '/v1/attestations',
    `/v1/attestations?artifact_sha256=${sha256}`,
    '/v1/batches',
    ...(batch === undefined ? [] : [`/v1/batches/${batch}`]),
    '/v1/service/me',
    '/v1/service/trust_roots',
  ];
  const readyz = async () => {
    const answer = await fetch(`${api.opsUrl}/readyz`);
    return `${answer.status} ${await answer.text()}`;
  };
  const before = await Promise.all(readPaths.map(async (path) => (await call('GET', path)).status));
  t.same(
    before,
    readPaths.map(() => 200),
  );
  const doctor = await runHere(['doctor'], { env: installation.env });
  t.match(doctor.stdout, /^ok +DATABASE_READ_URL +is a replica$/m);
  link.set('refuses');
  await until('reads are served again', async () => (await call('GET', readPaths[0] ?? '')).status === 200);
  // What is cached is valid for seconds.
  const endMs = Date.now() + 3_000;
  while (Date.now() < endMs)
    for (const path of readPaths) t.match(await call('GET', path), { status: 200 }, path);
  t.match(
    await call('GET', '/v1/attestations', { key: otherKey }),
    { status: 200 },
    'a key that is not cached',
  );
  t.match(await call('GET', '/v1/attestations', { key: `svc_live_${'x'.repeat(43)}` }), { status: 401 });
  t.match(await create(), { status: 503 });
  t.match(await readyz(), /^200 .*no primary of the database responds/s);
  const health = JSON.parse((await call('GET', '/v1/service/health')).text);
  t.match(health, { status: 'degraded', reason: /^no primary of the database responds/ });
  t.match(await (await fetch(`${api.opsUrl}/metrics`)).text(), /^attest_database_primary_away 1$/m);
  await pair.promoteStandby();
  link.set('passes');
  await until('creates are taken', async () => (await create()).status === 201);
  await until('it says so', async () => !/no primary/.test(await readyz()));
  const said = () => api.lines.filter(({ msg }) => /primary of the database/.test(msg));
  await until('its line arrives', async () => said().length > 1);
  t.same(
    said().map(({ level }) => level),
    ['error', 'info'],
  );
});

t.test('without a primary a process counts the reads of a key by itself', async (t) => {
  const pair = await startStandbyPair(t);
  const { link, url } = await linkTo(t, pair);
  const { natsUrl } = await testServers();
  const installation = await makeInstallation(t, {
    servers: { databaseUrl: url, natsUrl },
    env: { DATABASE_READ_URL: pair.standbyUrl },
  });
  const pool = installation.openPool();
  const apiKey = await makeUnlimitedKey(pool);
  await pool`UPDATE api_key SET reads_per_second = 20`;
  const api = await installation.startApi();
  const read = async () =>
    (await fetch(`${api.baseUrl}/v1/attestations`, { headers: { authorization: `Bearer ${apiKey}` } }))
      .status;
  await untilAsked(pair.primary, 'attest primary');
  link.set('refuses');
  await until('reads are served', async () => (await read()) === 200);
  const statuses = await Promise.all(Array.from({ length: 100 }, read));
  t.ok(statuses.includes(429), `${statuses}`);
  t.ok(statuses.filter((status) => status === 200).length <= 60, 'in at most three seconds');
  await until('the next second has room', async () => (await read()) === 200);
});
