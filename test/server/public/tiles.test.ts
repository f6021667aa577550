/** What strangers can ask of the log costs little: a log of forty full entry bundles, filled without the API. */
import { gunzipSync } from 'node:zlib';
import t from 'tap';
import { decodeEntries } from '../../../src/proof/log/entries.js';
import { readLeafRows } from '../../../src/server/log/store/leaves.js';
import { startApp } from '../../support/app.js';
import { openPlanner } from '../../support/judging/plans.js';
import { until } from '../../support/until.js';

const FULL = 80;
const WIDTH = 256;
const LEAVES = FULL * WIDTH + 7;
/** The first of the bundles are of submissions with as much metadata as there may be. */
const HEAVY = 2 * WIDTH;

const app = await startApp(t);
const { pool } = app;
const planner = openPlanner(String(app.config.databaseUrl));
t.teardown(planner.close);
await fill();

async function fill(): Promise<void> {
  await pool`
    INSERT INTO submission (log_id, log_index, id, project_id, submitted_at, artifact_sha256, schema, metadata,
                            metadata_state, commitment, dsse_key_id, signature, leaf_hash)
    SELECT l.id, i, 'sub_' || lpad(i::text, 26, '0'), 'prj_' || lpad('', 26, '0'), to_timestamp(1.8e9 + i), sha256('a'),
           'purl', CASE WHEN i < ${HEAVY}::int THEN (SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 1900) n WHERE i >= 0)
                        ELSE '{}' END,
           1, sha256('b'), k.id, sha256(i::text::bytea) || sha256('c'), ''
    FROM generate_series(0, ${LEAVES - 1}) i, log l, dsse_key k
    WHERE l.environment = 1 AND k.environment = 1`;
  await pool`
    INSERT INTO tile (log_id, level, tile_index, hashes)
    SELECT l.id, 0, i, (SELECT string_agg(sha256((i * 256 + n)::text::bytea), ''::bytea) FROM generate_series(1, 256) n)
    FROM generate_series(0, ${FULL - 1}) i, log l WHERE l.environment = 1`;
  await pool`
    INSERT INTO batch (log_id, tree_size, id, first_index, root_hash, note, policy_version, sealed_at, deadline_at,
                       registered_at, status, witnessed_at)
    SELECT id, ${LEAVES}, 'btc_1', 0, '', 'a note', 1, now(), now(), now(), 2, now() FROM log WHERE environment = 1`;
  await pool`VACUUM (ANALYZE) submission`;
}

const path = (index: number) => `/verify/log/live/tile/entries/${String(index).padStart(3, '0')}`;

t.test('the entries of a bundle are rebuilt without a look at metadata or batches', async (t) => {
  const read = (first: number) => readLeafRows(planner.sql, 1, first, first + WIDTH);
  const [log] = await pool<{ id: number }[]>`SELECT id FROM log WHERE environment = 1`;
  t.equal(log?.id, 1);
  for (const first of [0, HEAVY]) {
    for (const planFor of ['these', 'any'] as const) {
      const plan = await planner.explain(() => read(first), planFor);
      t.ok(plan.rows === WIDTH && plan.buffers < 50, JSON.stringify(plan));
    }
  }
  const { body } = await app.rest(path(0));
  const records = decodeEntries(body).map((record) => JSON.parse(Buffer.from(record).toString()));
  t.equal(records.length, WIDTH);
  t.match(records[3], { kind: 'hashedrekord', spec: { hashedRekordV002: { signature: {} } } });
});

t.test('rebuilds and waiting requests are limited, others get Retry-After', async (t) => {
  const lock = await pool.reserve();
  await lock`BEGIN`;
  await lock`SET LOCAL idle_in_transaction_session_timeout = 0`;
  await lock`LOCK TABLE submission IN ACCESS EXCLUSIVE MODE`;
  const answers: { status: number; headers: Record<string, string> }[] = [];
  const asked = Array.from({ length: FULL - 4 }, async (_, i) => {
    const answer = await app.rest(path(i + 4));
    answers.push(answer);
  });
  const refused = await until('some are refused', () => answers.length >= FULL - 4 - 51 && [...answers]);
  await lock`ROLLBACK`;
  lock.release();
  for (const { status, headers } of refused) {
    t.equal(status, 503);
    t.match(headers['retry-after'], /^[1-9]$/);
  }
  await Promise.all(asked);
  t.equal(answers.filter(({ status }) => status === 200).length, 51);
  t.equal((await app.rest(path(4 + 60))).status, 200, 'when there is room again');
});

t.test('concurrent requests for one tile share a rebuild, which is cached', async (t) => {
  const lock = await pool.reserve();
  await lock`BEGIN`;
  await lock`SET LOCAL idle_in_transaction_session_timeout = 0`;
  await lock`LOCK TABLE submission IN ACCESS EXCLUSIVE MODE`;
  const asked = Array.from({ length: 60 }, () => app.rest(path(1)));
  await until('one waits for the table', async () => {
    const [row] = await pool`
      SELECT count(*)::int AS n FROM pg_locks JOIN pg_stat_activity USING (pid)
      WHERE NOT granted AND query LIKE '%AS leaf%'`;
    return row?.n === 1;
  });
  await lock`ROLLBACK`;
  for (const { status } of await Promise.all(asked)) t.equal(status, 200);
  await until('every table is locked', async () => {
    await lock`BEGIN`;
    await lock`SET LOCAL idle_in_transaction_session_timeout = 0`;
    return lock`LOCK TABLE submission, batch, tile, log, dsse_key IN ACCESS EXCLUSIVE MODE`.catch(
      async (error) => {
        await lock`ROLLBACK`;
        throw error;
      },
    );
  });
  const again = await app.rest(path(1));
  const narrow = await app.rest(`${path(1)}.p/9`);
  await lock`ROLLBACK`;
  lock.release();
  const [first] = await Promise.all(asked);
  t.ok(first?.body.equals(again.body), 'without the database');
  t.same(decodeEntries(narrow.body), decodeEntries(again.body).slice(0, 9));
});

t.test('entry bundles and tiles are compressed if the client accepts it', async (t) => {
  for (const at of [path(2), `${path(FULL)}.p/7`, '/verify/log/live/tile/0/003']) {
    const plain = await app.rest(at);
    t.match(plain.headers, { vary: 'accept-encoding', etag: /^"[\w-]{43}"$/ });
    t.notOk('content-encoding' in plain.headers);
    const weak = `W/${plain.headers.etag}`;
    for (const accepted of ['gzip', 'br, gzip;q=0.5', '*', 'identity, gzip']) {
      const zipped = await app.rest(at, { headers: { 'accept-encoding': accepted } });
      t.match(zipped.headers, {
        'content-encoding': 'gzip',
        vary: 'accept-encoding',
        etag: weak,
        'cache-control': 'public, max-age=31536000, immutable',
        'content-type': 'application/octet-stream',
        'content-length': String(zipped.body.length),
      });
      t.ok(gunzipSync(zipped.body).equals(plain.body), `${at} for ${accepted}`);
      for (const tag of [weak, String(plain.headers.etag)]) {
        const headers = { 'accept-encoding': accepted, 'if-none-match': tag };
        const same = await app.rest(at, { headers });
        t.match(same, { status: 304, headers: { etag: weak, vary: 'accept-encoding' } });
      }
      const head = await app.rest(at, { method: 'HEAD', headers: { 'accept-encoding': accepted } });
      t.match(head, { status: 200, headers: { etag: weak, 'content-length': String(zipped.body.length) } });
    }
    for (const refused of ['identity', 'gzip;q=0', 'br']) {
      const answer = await app.rest(at, { headers: { 'accept-encoding': refused } });
      t.ok(answer.body.equals(plain.body) && !('content-encoding' in answer.headers), refused);
    }
  }
  const full = (await app.rest(path(2), { headers: { 'accept-encoding': 'gzip' } })).body.length;
  t.ok(full < (await app.rest(path(2))).body.length * 0.6, `${full} bytes`);
});
