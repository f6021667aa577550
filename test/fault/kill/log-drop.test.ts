/** `attest log drop` killed by SIGKILL at any moment: what it removed is archived, what is left works, and the next run goes on. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { AuditAction } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { tilePath } from '../../../src/proof/log/tile-path.js';
import { verifyBundle } from '../../../src/proof/verify/verify.js';
import { makeSmallPartitions } from '../../support/archives/small-partitions.js';
import type { Break } from '../../support/breaking/proxy.js';
import { commitOf, type Matching, statement } from '../../support/breaking/statement-matchers.js';
import { PROGRAM, runProcess } from '../../support/calling/run-cli.js';
import { setScene } from '../../support/fault-fixture.js';
import { until } from '../../support/until.js';
import { untilGone, untilWitnessed } from '../../support/wait-for-idle.js';

const ORIGIN = 'live.log.example.com';
/** Leaves of a tile, and here of a partition as well. */
const TILE = 256;
/** Of each call, which is a batch of the log. */
const CALL = 128;
/** The artifacts of whole multiples of 1,024 leaves are indexed. */
const TILES = 16;
const ROUNDS = 2;

const scene = await setScene(t);
const { installation, pool, servers, apiKey } = scene;
const { proxy } = servers.postgres;
const api = await installation.startApi();
await makeSmallPartitions(pool, TILE, TILES + 1);
const worker = await installation.startWorker();
const [{ id: logId } = { id: 0 }] = await pool<{ id: number }[]>`SELECT id FROM log WHERE origin = ${ORIGIN}`;
const folder = join(t.testdir(), 'archive');
const ids: string[] = [];
const attest = (...args: string[]) => runProcess(['log', ...args], installation.env);
const dropping = (end: number) => [
  'log',
  'drop',
  ORIGIN,
  '--archive',
  folder,
  '--without-entries',
  '--json',
  '--end',
  String(end),
];
const TOOLS = '^attest tool$';

async function submit(): Promise<void> {
  const items = Array.from({ length: CALL }, (_, i) => ({
    artifact: { sha256: (ids.length + i).toString(16).padStart(64, '0') },
    metadata: { schema: 'purl', purl: 'pkg:npm/a-test@1.0.0' },
  }));
  const answer = await fetch(`${api.baseUrl}/v1/attestations:batch`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ items }),
  });
  const { results } = (await answer.json()) as { results: { submission: { id: string } }[] };
  ids.push(...results.map(({ submission }) => submission.id));
  await until('they are a batch', async () => {
    return (await pool`SELECT FROM batch WHERE log_id = ${logId} AND tree_size = ${ids.length}`).length === 1;
  });
}

while (ids.length < TILES * TILE) await submit();
await untilWitnessed(pool);
await until('everything is archived', async () => {
  const { stdout } = await attest('archive', ORIGIN, '--to', folder, '--json');
  return (JSON.parse(stdout) as { end: number }).end === ids.length;
});
await until('the artifacts are indexed', async () => {
  const [row] =
    await pool`SELECT max(end_index) AS end FROM artifact_run WHERE log_id = ${logId} AND is_current`;
  return row?.end === TILES * TILE;
});
// Its transactions would be taken for those of the command.
await worker.stop();
const tiles = await readTiles();

async function readTiles(): Promise<string> {
  const hash = createHash('sha256');
  for (let index = 0; index < TILES; index++) {
    const answer = await fetch(
      `${api.baseUrl}/verify/log/live/${tilePath({ level: 0, index, width: TILE })}`,
    );
    if (answer.status !== 200) throw new Error(`tile ${index}: ${answer.status}`);
    hash.update(Buffer.from(await answer.arrayBuffer()));
  }
  return hash.digest('hex');
}

const read = async (index: number) => {
  const answer = await fetch(`${api.baseUrl}/v1/attestations/${ids[index]}`, {
    headers: { authorization: `Bearer ${apiKey}` },
  });
  return { status: answer.status, text: await answer.text() };
};

/** Judges what the database, the API and the archive have. @returns the first leaf that has a row */
async function judge(t: Test): Promise<number> {
  await untilGone(pool, TOOLS);
  const [log] = await pool<{ end: number }[]>`SELECT archived_size AS end FROM log WHERE id = ${logId}`;
  const end = log?.end ?? 0;
  const rows = await pool`
    SELECT min(log_index) AS first, max(log_index) AS last, count(*) AS count FROM submission WHERE log_id = ${logId}`;
  t.match(rows, [{ first: end, last: ids.length - 1, count: ids.length - end }]);
  for (const table of ['signature_stamp', 'submission_statement'])
    t.same(await pool`SELECT FROM ${pool(table)} WHERE log_id = ${logId} AND log_index < ${end}`, [], table);
  for (const index of [0, end - TILE, end - CALL, end - 1].filter((index) => index >= 0 && index < end)) {
    const { status, text } = await read(index);
    t.equal(status, 410, `leaf ${index}`);
    const { code, details } = JSON.parse(text).error;
    t.equal(code, 'submission.archived');
    const object = await readFile(join(folder, details.object));
    t.equal(createHash('sha256').update(object).digest('hex'), details.sha256);
  }
  const trustRoots = await (await fetch(`${api.baseUrl}/verify/trust_roots.json`)).json();
  // Not the leaf that a later call wants to be gone: the API has in memory what it has answered.
  for (const index of [end + 1, ids.length - 1]) {
    const { status, text } = await read(index);
    t.equal(status, 200, `leaf ${index}`);
    const { bundle, artifact } = JSON.parse(text);
    const options = {
      trustRoots,
      environment: 'live',
      now: new Date(),
      artifactSha256: artifact.sha256,
    } as const;
    t.match(await verifyBundle(JSON.stringify(bundle), options), { verdict: 'verified' });
  }
  t.equal(await readTiles(), tiles, 'tiles are as before');
  return end;
}

/** Runs the command again, which removes what is left and leaves no table behind. */
async function finish(t: Test, end: number): Promise<void> {
  const again = await runProcess(dropping(end), installation.env);
  t.match(again, { code: 0, stderr: '' });
  t.match(JSON.parse(again.stdout), { end });
  t.equal(await judge(t), end);
  const tables = await pool`
    SELECT FROM pg_class WHERE relkind = 'r' AND relname LIKE ${`submission\\_${logId}\\_%`}`;
  t.equal(tables.length, TILES + 1 - end / TILE, 'no table of a former partition is left');
}

function start(end: number) {
  const child = spawn(process.execPath, [...PROGRAM, ...dropping(end)], {
    env: { PATH: process.env.PATH, ...installation.env },
    stdio: 'ignore',
  });
  const exited = once(child, 'exit');
  t.teardown(() => child.kill('SIGKILL'));
  return {
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

let next = TILE;
const POINTS: [what: string, when: Break, matching: () => Matching, isRemoved: boolean][] = [
  ['the size is to be recorded', 'before the request arrives', () => statement('SET archived_size'), false],
  ['rows are removed', 'before the answer arrives', () => statement('remove_submissions'), false],
  ['the commit is on its way', 'before the request arrives', () => commitOf('SET archived_size'), false],
  ['the commit is done', 'before the answer arrives', () => commitOf('SET archived_size'), true],
  ['the partition is detached', 'before the answer arrives', () => statement('DETACH PARTITION'), true],
  ['the partition is dropped', 'before the answer arrives', () => statement('DROP TABLE'), true],
];

for (const [what, when, matching, isRemoved] of POINTS) {
  t.test(`killed when ${what}, it is finished by the next run`, async (t) => {
    const held = proxy.holdNext(when, matching());
    const doomed = start(next);
    await held;
    await doomed.kill();
    const end = await judge(t);
    // A tile is two batches, and the last has its end: the first removes nothing yet.
    t.equal(end, isRemoved ? next : next - TILE);
    await finish(t, next);
    next += TILE;
  });
}

t.test('killed between two batches, the next run names objects that were archived again', async (t) => {
  const held = proxy.holdNext('before the request arrives', statement('SET archived_size'));
  const doomed = start(next);
  await held;
  await doomed.kill();
  await judge(t);
  const redacted = await fetch(`${api.baseUrl}/v1/attestations/${ids[next - TILE]}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${apiKey}` },
  });
  t.equal(redacted.status, 200);
  t.match(await runProcess(dropping(next), installation.env), { code: 1, stderr: /archive again/ });
  t.match(await attest('archive', ORIGIN, '--to', folder), { code: 0 });
  await finish(t, next);
  next += TILE;
});

const listTools = async () =>
  (await pool<{ pid: number }[]>`SELECT pid FROM pg_stat_activity WHERE application_name ~ ${TOOLS}`).map(
    ({ pid }) => pid,
  );

for (const [what, isEnded] of [
  ['Postgres goes on with it', false],
  ['Postgres stops it', true],
] as const) {
  t.test(`killed while it waits to detach, and ${what}, it is finished by the next run`, async (t) => {
    const reader = await pool.reserve();
    await reader`BEGIN`;
    // Otherwise Postgres ends the session when it has been idle for 3.5 s.
    await reader`SET LOCAL idle_in_transaction_session_timeout = 0`;
    await reader`SELECT FROM submission WHERE log_id = ${logId} LIMIT 1`;
    const doomed = start(next);
    await until('the partition is being detached', async () => {
      return (await pool`SELECT FROM pg_inherits WHERE inhdetachpending`).length === 1;
    });
    await doomed.kill();
    const left = await listTools();
    t.ok(left.length > 0, 'Postgres has not noticed');
    if (isEnded) for (const pid of left) await pool`SELECT pg_terminate_backend(${pid})`;
    const again = runProcess(dropping(next), installation.env);
    await until('the next run has begun', async () => (await listTools()).some((pid) => !left.includes(pid)));
    await reader`COMMIT`;
    reader.release();
    t.match(await again, { code: 0, stderr: '' });
    await finish(t, next);
    next += TILE;
  });
}

t.test('killed at random moments, it removes everything in the end', async (t) => {
  const started = performance.now();
  await finish(t, next);
  const whole = performance.now() - started;
  for (let round = 0; round < ROUNDS; round++) {
    next += TILE;
    const doomed = start(next);
    const ms = Math.random() * whole;
    await delay(ms);
    await doomed.kill();
    t.comment(`killed after ${Math.round(ms)} of ${Math.round(whole)} ms`);
    t.ok([next - TILE, next].includes(await judge(t)));
    await finish(t, next);
  }
});

t.test('the log goes on, and each run that removed something is an audit entry', async (t) => {
  const again = await installation.startWorker();
  await submit();
  await untilWitnessed(pool);
  await again.stop();
  t.equal(await judge(t), next);
  const entries = await pool<{ detail: { first: number; end: number } }[]>`
    SELECT detail FROM audit_entry WHERE resource_id = ${ORIGIN} AND action = ${AuditAction.LOG_DROPPED} ORDER BY id`;
  t.same(
    entries.map(({ detail }) => detail),
    Array.from({ length: next / TILE }, (_, n) => ({ first: n * TILE, end: (n + 1) * TILE })),
  );
  await api.stop();
});
