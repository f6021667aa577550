/** `attest log drop`: archived submissions leave the database, and the log goes on as before. */
import { createHash } from 'node:crypto';
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import t from 'tap';
import { verifyBundle } from '../../../../src/proof/verify/verify.js';
import { type Log, listLogs } from '../../../../src/server/log/store/logs.js';
import { listPartitions } from '../../../../src/server/log/store/partitions.js';
import type { App } from '../../../support/app.js';
import {
  create,
  type Installation,
  makeSource,
  ORIGIN,
  startInstallation,
} from '../../../support/archives/archived-log.js';
import { makeSmallPartitions } from '../../../support/archives/small-partitions.js';
import { newKey, type TestKey } from '../../../support/calling/test-keys.js';
import { until } from '../../../support/until.js';

const VALID = { schema: 'purl', purl: 'pkg:npm/a@1.0.0' };

async function rowsIn({ app }: Pick<Installation, 'app'>, origin = ORIGIN): Promise<number[]> {
  const rows = await app.pool<{ index: number }[]>`
    SELECT s.log_index AS index FROM submission s JOIN log l ON l.id = s.log_id WHERE l.origin = ${origin} ORDER BY 1`;
  return rows.map(({ index }) => index);
}

const verifyBackup = ({ app, run }: Installation) =>
  run('backup', 'verify', '--verify-url', app.verifyUrl, '--json');

async function statusOf({ run }: Installation, origin = ORIGIN) {
  const logs = JSON.parse((await run('log', 'status', '--json')).stdout) as { origin: string }[];
  return logs.find((log) => log.origin === origin);
}

t.test(
  'an epoch that has ended is removed whole, and each of its submissions names its object',
  async (t) => {
    const source = await makeSource(t);
    const { app, run, owner, other, ids, others } = source;
    const folder = join(t.testdir(), 'archive');
    const drop = (...args: string[]) => run('log', 'drop', ORIGIN, '--archive', folder, ...args);
    t.match(await drop('--without-entries'), { code: 1, stderr: /the archive lacks the leaves/ });
    await run('log', 'archive', ORIGIN, '--to', folder);
    t.match(await drop(), { code: 1, stderr: /set LOG_STORAGE/ });
    const before = await app.rest(`/v1/attestations/${ids.valid}/bundle`, { apiKey: owner.key });
    const count = Object.keys(ids).length + others.length;
    t.match(await drop('--without-entries', '--json'), { code: 0, stdout: new RegExp(`"removed":${count}`) });
    t.same(await rowsIn(source), []);
    t.equal((await app.pool`SELECT FROM submission_statement`).length, 0);

    await app.drain();
    const get = (id: string, { key }: TestKey, path = '', more = {}) =>
      app.rest(`/v1/attestations/${id}${path}`, { apiKey: key, ...more });
    for (const id of Object.values(ids)) {
      const { status, json } = await get(id, owner);
      t.equal(status, 410, id);
      const { code, details } = json.error as { code: string; details: { object: string; sha256: string } };
      t.equal(code, 'submission.archived');
      const found = await readFile(join(folder, details.object));
      t.equal(found.length > 0, true);
      t.equal((await get(id, other)).status, 404, "another project's");
    }
    t.equal((await get(others[0] ?? '', other)).status, 410);
    t.equal((await get('sub_01JX5WQ0ZZZZZZZZZZZZZZZZZ0', owner)).status, 404);
    t.match(await get(ids.valid, owner, '/bundle'), { json: { error: { code: 'submission.archived' } } });
    t.match(await get(ids.invalid, owner, '', { method: 'PATCH', body: { metadata: VALID } }), {
      status: 410,
    });
    t.match(await get(ids.valid, owner, '', { method: 'DELETE' }), { status: 410 });
    const listed = await app.rest('/v1/attestations', { apiKey: owner.key });
    t.same(listed.json.data, []);
    t.equal(((await app.rest('/v1/batches', { apiKey: owner.key })).json.data as object[]).length > 0, true);

    t.match(await statusOf(source), { state: 'closed', leaves: count, published_size: count });
    t.match(await verifyBackup(source), { code: 0, stderr: '' });
    for (const path of ['checkpoint', `tile/0/000.p/${count}`])
      t.equal((await app.rest(`/verify/log/live/${path}`)).status, 200, path);
    t.equal((await app.rest(`/verify/log/live/tile/entries/000.p/${count}`)).status, 404);
    const next = await until('the next epoch goes on', () => create(app, owner));
    t.equal(typeof next.id, 'string');
    await app.drain();
    t.match(await drop('--without-entries'), { code: 0, stdout: /^removed 0 submissions/ });
    t.match(await run('log', 'archive', ORIGIN, '--to', folder), {
      code: 1,
      stderr: /no settled batch from leaf \d+ on$/m,
    });
    const trustRoots = JSON.parse(await (await fetch(`${app.verifyUrl}/trust_roots.json`)).text());
    const verified = await verifyBundle(before.body.toString(), {
      trustRoots,
      environment: 'live',
      now: new Date(),
    });
    t.match(verified, { verdict: 'could_not_check' }, 'without the artifact');
  },
);

/** Submits so many in calls of 250. @returns ids */
async function submitMany(app: App, { key }: TestKey, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let left = count; left > 0; left -= 250) {
    const items = Array.from({ length: Math.min(250, left) }, (_, i) => ({
      artifact: { sha256: (ids.length + i).toString(16).padStart(64, '0') },
      metadata: VALID,
    }));
    const { status, json } = await app.rest('/v1/attestations:batch', { apiKey: key, body: { items } });
    if (status !== 200 || json.failed !== 0) throw new Error(JSON.stringify(json).slice(0, 500));
    const results = (json.results ?? json.data) as { id?: string; submission?: { id: string } }[];
    ids.push(...results.map((one) => String(one.submission?.id ?? one.id)));
  }
  return ids;
}

t.test(
  'below a leaf of a log that goes on: later ones are proven, sealed and verified as before',
  async (t) => {
    const installation = await startInstallation(t);
    const { app, run } = installation;
    await makeSmallPartitions(app.pool, 512, 4);
    const owner = await newKey(app);
    const folder = join(t.testdir(), 'archive');
    const ids = await submitMany(app, owner, 600);
    await app.drain();
    ids.push(...(await submitMany(app, owner, 650)));
    await app.drain();
    const early = ids.slice(0, 3);
    ids.push(...(await submitMany(app, owner, 40)));
    await app.drain();
    await run('log', 'archive', ORIGIN, '--to', folder);
    const drop = (...args: string[]) =>
      run('log', 'drop', ORIGIN, '--archive', folder, '--without-entries', ...args);
    t.match(await drop(), { code: 1, stderr: /goes on/ });
    await app.pool`INSERT INTO idempotency_key (api_key_id, key, request_hash, resource_id, created_at)
      VALUES ('key_a', 'a', '', ${ids[0] ?? ''}, clock_timestamp() - interval '1 hour')`;
    t.match(await drop('--end', '1200'), { code: 1, stderr: /Idempotency-Key/ });
    await app.pool`DELETE FROM idempotency_key`;
    const changed = ids[5] ?? '';
    await app.rest(`/v1/attestations/${changed}`, { apiKey: owner.key, method: 'DELETE' });
    const stale = await drop('--end', '1024');
    t.match(stale, { code: 1, stderr: /has changed since: archive again/ });
    await run('log', 'archive', ORIGIN, '--to', folder);
    const result = await drop('--end', '1200', '--json');
    t.equal(result.code, 0, result.stderr);
    const { end } = JSON.parse(result.stdout) as { end: number };
    t.ok(end >= 512 && end <= 1_200 && end % 256 === 0, `whole tiles of batches that end before: ${end}`);
    t.equal((await rowsIn(installation))[0], end);
    const again = await drop('--end', '1200');
    t.match(again.stdout, /^removed 0 submissions .* on; a batch or tile that goes beyond --end stays$/m);
    const [{ id: logId }] = (await listLogs(app.pool)).filter(({ origin }) => origin === ORIGIN) as [Log];
    const partitions = (await listPartitions(app.pool, logId)).map(({ firstIndex }) => firstIndex);
    t.equal(partitions[0], end - (end % 512), 'partitions without rows are dropped');
    t.match(await app.rest(`/v1/attestations/${early[0]}`, { apiKey: owner.key }), { status: 410 });
    ids.push(...(await submitMany(app, owner, 30)));
    await app.drain();
    const rows = await rowsIn(installation);
    t.same(
      rows,
      Array.from({ length: ids.length - end }, (_, i) => end + i),
      'no index is given twice',
    );
    const last = ids.at(-1) ?? '';
    const answer = await app.rest(`/v1/attestations/${last}`, { apiKey: owner.key });
    const trustRoots = JSON.parse(await (await fetch(`${app.verifyUrl}/trust_roots.json`)).text());
    const verified = await verifyBundle(JSON.stringify(answer.json.bundle), {
      trustRoots,
      environment: 'live',
      now: new Date(),
      artifactSha256: (answer.json.artifact as { sha256: string }).sha256,
    });
    t.equal(verified.verdict, 'verified');
    t.match(await verifyBackup(installation), { code: 0, stderr: '' });
    t.match(await statusOf(installation), { state: 'ok', leaves: ids.length });
    const listed = await app.rest('/v1/attestations?limit=2', { apiKey: owner.key });
    t.equal((listed.json.data as object[]).length, 2);
    t.match(JSON.parse((await run('log', 'archive', ORIGIN, '--to', folder, '--json')).stdout), {
      end: ids.length,
    });
  },
);

t.test('what is left of a batch is archived again after a change, beside what was removed', async (t) => {
  const installation = await startInstallation(t);
  const { app, run } = installation;
  const owner = await newKey(app);
  const folder = join(t.testdir(), 'archive');
  const ids = await submitMany(app, owner, 1_000);
  await app.drain();
  ids.push(...(await submitMany(app, owner, 200)));
  await app.drain();
  ids.push(...(await submitMany(app, owner, 10)));
  await app.drain();
  const archive = () => run('log', 'archive', ORIGIN, '--to', folder, '--json');
  const drop = (end: number) =>
    run('log', 'drop', ORIGIN, '--archive', folder, '--without-entries', '--json', '--end', String(end));
  t.match(await archive(), { code: 0 });
  const first = await until('artifacts are indexed', async () => {
    const { code, stdout } = await drop(1_199);
    return code === 0 && (JSON.parse(stdout) as { end: number });
  });
  const batches = await app.pool<{ first: number; end: number }[]>`
    SELECT first_index AS first, tree_size AS end FROM batch WHERE first_index < ${first.end} AND tree_size > ${first.end}`;
  t.equal(batches.length, 1, `leaf ${first.end} is within a batch`);
  const lastOfBatch = (batches[0]?.end ?? 0) - 1;
  const changed = ids[lastOfBatch] ?? '';
  const read = (id: string) => app.rest(`/v1/attestations/${id}`, { apiKey: owner.key });
  const removedOf = async () => {
    const { status, json } = await read(ids[first.end - 1] ?? '');
    t.equal(status, 410);
    return (json.error as { details: { object: string; sha256: string } }).details;
  };
  const linesOf = async (object: string) =>
    gunzipSync(await readFile(join(folder, object)))
      .toString()
      .split('\n');
  const before = await removedOf();
  const linesBefore = await linesOf(before.object);
  await app.rest(`/v1/attestations/${changed}`, { apiKey: owner.key, method: 'DELETE' });
  t.match(await drop(1_200), { code: 1, stderr: /has changed since: archive again/ });
  t.match(await archive(), { code: 0 });
  const after = await removedOf();
  t.equal(after.object, before.object);
  const object = await readFile(join(folder, after.object));
  t.equal(createHash('sha256').update(object).digest('hex'), after.sha256);
  const lines = await linesOf(after.object);
  const isChanged = lines.flatMap((line, n) => (line === linesBefore[n] ? [] : [line]));
  t.match(isChanged, [/"metadata_state": ?"?redacted|redacted_at/], 'only the line that was redacted');
  t.match(JSON.parse((await archive()).stdout), { written: 0 }, 'it is archived');
  const second = await drop(1_200);
  t.equal(second.code, 0, second.stderr);
  t.match(await run('log', 'archive', ORIGIN, '--to', join(t.testdirName, 'other')), {
    code: 1,
    stderr: /the archive lacks leaves before/,
  });
  t.match(await verifyBackup(installation), { code: 0, stderr: '' });
});

t.test('an archive that was changed removes nothing', async (t) => {
  const source = await makeSource(t);
  const folder = join(t.testdir(), 'archive');
  await source.run('log', 'archive', ORIGIN, '--to', folder);
  const objects = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.gz')).sort();
  const before = await rowsIn(source);
  const changes: [(path: string) => Promise<void>, RegExp][] = [
    [
      async (path) => writeFile(path, (await readFile(path)).subarray(0, 1_000)),
      /unexpected end|not the object/,
    ],
    [
      async (path) => writeFile(path, await readFile(join(folder, objects[1] ?? ''))),
      /changed since|lines|not the object/,
    ],
  ];
  for (const [n, [change, stderr]] of changes.entries()) {
    const copy = join(t.testdirName, `copy-${n}`);
    await cp(folder, copy, { recursive: true });
    await change(join(copy, objects[0] ?? ''));
    t.match(await source.run('log', 'drop', ORIGIN, '--archive', copy, '--without-entries'), {
      code: 1,
      stderr,
    });
    t.same(await rowsIn(source), before);
  }
});
