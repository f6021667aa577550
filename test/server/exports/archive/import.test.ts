/** `attest log import`: a closed epoch moves to another database of the installation. */
import { execFileSync, spawn } from 'node:child_process';
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { verifyBundle } from '../../../../src/proof/verify/verify.js';
import {
  type Installation,
  makeSource,
  ORIGIN,
  startInstallation,
  startTarget,
} from '../../../support/archives/archived-log.js';
import { PROGRAM } from '../../../support/calling/run-cli.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { bucketSetting, startStore } from '../../../support/exports/s3/fixture.js';
import { until } from '../../../support/until.js';

const source = await makeSource(t);
const { app, keys, owner, other, ids, others } = source;
const folder = join(t.testdir(), 'archive');
await source.run('log', 'archive', ORIGIN, '--to', folder);
const VALID = { schema: 'purl', purl: 'pkg:npm/a@1.0.0' };
const COUNT = Object.keys(ids).length + others.length;

/** Rows of a table of a log by its origin, as text. */
async function rowsOf(
  { app: { pool } }: Pick<Installation, 'app'>,
  table: string,
  order: string,
  columns = '*',
) {
  const rows = await pool.unsafe(
    `SELECT to_jsonb(r) - '{log_id,dsse_key_id,policy_version,notified,version,project_number,schema_number}'::text[] AS row FROM (
       SELECT ${columns} FROM ${table} WHERE log_id = (SELECT id FROM log WHERE origin = '${ORIGIN}') ORDER BY ${order}) r`,
  );
  return rows.map(({ row }) => row);
}

const TABLES: [table: string, order: string][] = [
  ['named_submission', 'log_index'],
  ['submission_statement', 'log_index'],
  ['signature_stamp', 'log_index, witness'],
  ['batch', 'tree_size'],
  ['batch_content', 'tree_size, project_id, schema'],
  ['batch_transition', 'tree_size, status'],
  ['evidence', 'tree_size, witness'],
  ['tile', 'level, tile_index'],
  ['log_time', 'end_index'],
];

t.test('an imported epoch is read, listed, proven and published as before', async (t) => {
  const before = new Map<string, unknown>();
  for (const id of [...Object.values(ids), ...others]) {
    const apiKey = others.includes(id) ? other.key : owner.key;
    for (const path of [`/v1/attestations/${id}`, `/v1/attestations/${id}/bundle`])
      before.set(path, (await app.rest(path, { apiKey })).json);
  }
  const target = await startTarget(t, source);
  const { code, stdout, stderr } = await target.run('log', 'import', ORIGIN, '--from', folder, '--json');
  t.same([code, stderr], [0, '']);
  t.same(JSON.parse(stdout), { origin: ORIGIN, leaves: COUNT, projects: 2, new_projects: 2 });
  for (const [table, order] of TABLES)
    t.same(await rowsOf(target, table, order), await rowsOf(source, table, order), table);

  const here = await newKey(target.app, { projectId: owner.projectId });
  const others2 = await newKey(target.app, { projectId: other.projectId });
  await target.app.drain();
  for (const [path, json] of before) {
    const apiKey = others.some((id) => path.includes(id)) ? others2.key : here.key;
    const answer = await target.app.rest(path, { apiKey });
    t.equal(answer.status, 200, path);
    t.same(answer.json, json, path);
  }
  const trustRoots = JSON.parse(await (await fetch(`${target.app.verifyUrl}/trust_roots.json`)).text());
  const bundle = await target.app.rest(`/v1/attestations/${ids.valid}/bundle`, { apiKey: here.key });
  const verified = await verifyBundle(bundle.body.toString(), {
    trustRoots,
    environment: 'live',
    now: new Date(),
    artifactSha256: (before.get(`/v1/attestations/${ids.valid}`) as { artifact: { sha256: string } }).artifact
      .sha256,
  });
  t.match(verified, { verdict: 'verified' }, 'by the trust roots of the new database');
  const [id = ''] = others;
  t.equal(
    (await target.app.rest(`/v1/attestations/${id}`, { apiKey: here.key })).status,
    404,
    "another project's",
  );
  const list = async (of: typeof app, apiKey: string, query = '') =>
    ((await of.rest(`/v1/attestations${query}`, { apiKey })).json.data as { id: string }[]).map(
      (one) => one.id,
    );
  t.same(await list(target.app, here.key), await list(app, owner.key));
  t.same(await list(target.app, here.key, '?build=ci-4711'), [ids.build]);
  const { json } = await app.rest(`/v1/attestations/${ids.named}`, { apiKey: owner.key });
  const { sha256 } = json.artifact as { sha256: string };
  t.same(await list(target.app, here.key, `?artifact_sha256=${sha256}`), [ids.named]);
  for (const path of ['checkpoint', 'tile/entries/000.p/13', 'tile/0/000.p/13']) {
    const [a, b] = await Promise.all([app, target.app].map((one) => one.rest(`/verify/log/live/${path}`)));
    t.equal(b?.status, 200, path);
    t.same(b?.body, a?.body, path);
  }
  const logs = JSON.parse((await target.run('log', 'status', '--json')).stdout);
  t.match(
    logs.find((log: { origin: string }) => log.origin === ORIGIN),
    { state: 'closed', leaves: COUNT, published_size: COUNT, register_size: COUNT },
  );
  // A process that ran before knows of the next epoch within seconds, and takes nothing for the imported one.
  await until('the next epoch goes on', async () => {
    const body = { artifact: { sha256: 'ab'.repeat(32) }, metadata: VALID };
    return (await target.app.rest('/v1/attestations', { apiKey: here.key, body })).status === 201;
  });
  t.equal((await target.app.pool`SELECT FROM submission WHERE log_id = 1`).length, COUNT);
  t.match(await target.run('log', 'import', ORIGIN, '--from', folder), {
    code: 1,
    stderr: /already, with leaves/,
  });
});

t.test('what was redacted stays so, and can be corrected and redacted further', async (t) => {
  const target = await startTarget(t, source);
  t.match(await target.run('log', 'import', ORIGIN, '--from', folder), { code: 0, stderr: '' });
  const here = await newKey(target.app, { projectId: owner.projectId });
  const change = async (id: string, method: string, body?: { metadata: object }) =>
    target.app.rest(`/v1/attestations/${id}`, { apiKey: here.key, method, body: body as never });
  t.match(await change(ids.redacted, 'PATCH', { metadata: VALID }), {
    json: { error: { code: 'submission.redacted' } },
  });
  t.match(await change(ids.invalid, 'PATCH', { metadata: VALID }), {
    status: 200,
    json: { metadata_state: 'valid' },
  });
  t.match(await change(ids.valid, 'DELETE'), { status: 200, json: { metadata_state: 'redacted' } });
});

t.test('a log is imported only where it fits', async (t) => {
  const target = await startInstallation(t, { keys, env: { CHECKPOINT_REGISTER: app.register } });
  const importing = () => target.run('log', 'import', ORIGIN, '--from', folder);
  t.match(await importing(), { code: 1, stderr: /no later epoch/ });
  t.match(await target.run('log', 'import', 'live.example.org', '--from', folder), {
    code: 1,
    stderr: /not there/,
  });
  const stranger = await startInstallation(t, {
    env: { CHECKPOINT_REGISTER: join(t.testdir(), 'register') },
  });
  t.match(await stranger.run('log', 'import', ORIGIN, '--from', folder), {
    code: 1,
    stderr: /not signed by a DSSE key that the database trusts/,
  });
});

t.test('an archive in a bucket is imported as one in a folder', async (t) => {
  const store = await startStore(t);
  const place = bucketSetting(store.url, 'archives');
  t.match(await source.run('log', 'archive', ORIGIN, '--to', place), {
    code: 0,
    stdout: /it can be imported/,
  });
  const again = await source.run('log', 'archive', ORIGIN, '--to', place, '--json');
  t.match(JSON.parse(again.stdout), { written: 0, end: COUNT });
  const target = await startTarget(t, source);
  t.match(await target.run('log', 'import', ORIGIN, '--from', place), { code: 0, stdout: /13 leaves/ });
  t.same(
    await rowsOf(target, 'tile', 'level, tile_index'),
    await rowsOf(source, 'tile', 'level, tile_index'),
  );
});

t.test('an import that is killed leaves nothing, and is begun anew', async (t) => {
  const copy = join(t.testdir(), 'archive');
  await cp(folder, copy, { recursive: true });
  const objects = (await readdir(copy, { recursive: true })).filter((name) => name.endsWith('.gz')).sort();
  const last = join(copy, objects.at(-1) ?? '');
  const bytes = await readFile(last);
  await rm(last);
  // A pipe that is never written to holds the import, after the objects before it.
  execFileSync('mkfifo', [last]);
  const target = await startTarget(t, source);
  const env = {
    ...process.env,
    ...keys,
    DATABASE_URL: target.app.config.databaseUrl,
    CHECKPOINT_REGISTER: app.register,
  };
  const child = spawn(process.execPath, [...PROGRAM, 'log', 'import', ORIGIN, '--from', copy], { env });
  const isInserting = async () =>
    (
      await target.app.pool`SELECT FROM pg_stat_activity WHERE query LIKE '%INSERT INTO batch_transition%'
                           AND state = 'idle in transaction'`
    ).length > 0;
  await until('a batch is inserted', isInserting);
  child.kill('SIGKILL');
  await until('its transaction has ended', async () => !(await isInserting()));
  t.equal((await target.app.pool`SELECT FROM submission UNION ALL SELECT FROM batch`).length, 0);
  await rm(last);
  await writeFile(last, bytes);
  t.match(await target.run('log', 'import', ORIGIN, '--from', copy), { code: 0 });
});
