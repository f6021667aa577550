/** A database set back to before a published checkpoint, and a register that is lost or damaged: the log never forks. */
import { readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { entryPlace, readEntry } from '../../support/breaking/register.js';
import { acknowledgement, newCreation, send } from '../../support/calling/load.js';
import { runHere } from '../../support/calling/run-cli.js';
import { setScene } from '../../support/fault-fixture.js';
import type { Acknowledged } from '../../support/judging/consistent.js';
import type { ServiceProcess } from '../../support/servers/installation.js';
import { backUp } from '../../support/servers/private-servers.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';

const ORIGIN = 'live.log.example.com';

const scene = await setScene(t);
const { installation, pool, servers, apiKey } = scene;
const { postgres } = servers;
const entry = entryPlace(installation.register, ORIGIN);
const root = () => readEntry(installation.register, ORIGIN);
const acknowledged: Acknowledged[] = [];
let api = await installation.startApi();
let worker = await installation.startWorker();

const create = () => send(api.baseUrl, apiKey, newCreation());

async function submit(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const creation = newCreation();
    acknowledged.push(acknowledgement(creation, await send(api.baseUrl, apiKey, creation)));
  }
}

async function readiness({ opsUrl }: ServiceProcess): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${opsUrl}/readyz/live`);
  return { status: answer.status, text: await answer.text() };
}

const attestLog = (...args: string[]) => runHere(['log', ...args, '--json'], { env: installation.env });

/** What is signed: by the tables and by the register. */
async function signed(): Promise<unknown> {
  const batches = await pool`SELECT tree_size, note FROM batch ORDER BY log_id, tree_size`;
  return { batches, register: root() };
}

async function withoutRegister(t: Test, spoil: () => Promise<void>, reason: RegExp): Promise<void> {
  const before = await pool`SELECT count(*) AS n FROM batch`;
  await spoil();
  await submit(2);
  await until('the worker says so', async () => (await readiness(worker)).status === 503);
  t.match((await readiness(worker)).text, reason);
  t.same(await pool`SELECT count(*) AS n FROM batch`, before, 'nothing is sealed');
  await until('the log says so', () =>
    worker.lines.some(({ level, reason: said }) => level === 'error' && reason.test(String(said))),
  );
  t.equal((await readiness(api)).status, 200, 'serving goes on');
}

async function isGoodAgain(t: Test): Promise<void> {
  await untilWitnessed(pool);
  t.equal((await readiness(worker)).status, 200);
  await scene.assertConsistent(t, acknowledged);
}

t.test('nothing is sealed without the register, and sealing continues once it is restored', async (t) => {
  await submit(3);
  await untilWitnessed(pool);
  await withoutRegister(
    t,
    () => rename(entry, `${entry}.lost`),
    /the checkpoint register lacks the log live\./,
  );
  const { code, stdout } = await attestLog('status');
  t.match([code, stdout], [0, /"register_missing"/]);
  t.match(await attestLog('fill-register'), { code: 0, stdout: /live\.log\.example\.com/ });
  await isGoodAgain(t);
});

t.test('a damaged register seals nothing, is not reported as a fork, and can be restored', async (t) => {
  const [good = ''] = await readdir(entry);
  const bad = good.slice(0, 30);
  await withoutRegister(
    t,
    () => rename(join(entry, good), join(entry, bad)),
    /live\.log\.example\.com\.checkpoint cannot be read: it holds 1 files, and not one that is named/,
  );
  t.match(await attestLog('status'), { code: 0, stdout: /"register_missing"/ });
  t.match(await attestLog('fill-register'), { code: 1 }, 'what is there is never replaced');
  await rename(join(entry, bad), join(entry, good));
  await isGoodAgain(t);
});

t.test('processes start without their register, and seal once it is back', async (t) => {
  await worker.stop();
  await api.stop();
  await rename(entry, `${entry}.away`);
  api = await installation.startApi();
  worker = await installation.startWorker();
  await withoutRegister(t, async () => {}, /the checkpoint register lacks the log live\./);
  await rename(`${entry}.away`, entry);
  await isGoodAgain(t);
});

t.test('a backup from before a published checkpoint freezes the log', async (t) => {
  await postgres.stop();
  const restore = await backUp(postgres);
  await postgres.start();
  await until('the database is back', async () => (await pool`SELECT 1`).length === 1);
  const kept = [...acknowledged];
  await submit(3);
  await untilWitnessed(pool);
  const register = root();
  await postgres.stop();
  await restore();
  await postgres.start();
  await until('the database is back', async () => (await pool`SELECT 1`).length === 1);
  const restored = await signed();

  await t.test('creations are rejected with the reason', async (t) => {
    for (let i = 0; i < 5; i++) {
      const { status, body, headers } = await create();
      t.match(
        { status, body },
        { status: 503, body: { error: { code: 'service.unavailable', message: /frozen/ } } },
      );
      t.match(headers.get('retry-after'), /^\d+$/);
    }
  });

  await t.test('both processes report it on /readyz and in their logs', async (t) => {
    const reason = new RegExp(`the log ${ORIGIN} is frozen: the register has a checkpoint of size \\d+`);
    for (const each of [api, worker]) {
      const { status, text } = await readiness(each);
      t.equal(status, 503);
      t.match(text, reason);
      t.equal((await fetch(`${each.opsUrl}/readyz/test`)).status, 200, 'the test log is not taken away');
      const whole = await fetch(`${each.opsUrl}/readyz`);
      t.equal(whole.status, 200);
      t.match(await whole.text(), reason, 'which is told all the same');
    }
    const fatal = () => [...api.lines, ...worker.lines].filter(({ level }) => level === 'fatal');
    await until('a fatal line is there', () => fatal().length > 0);
    t.match(fatal(), [
      { msg: 'the log is frozen', origin: ORIGIN, reason: /^the register has a checkpoint/ },
    ]);
    t.equal(fatal().length, 1, 'once');
  });

  await t.test('reads continue', async (t) => {
    const answer = await fetch(`${api.baseUrl}/v1/attestations/${kept[0]?.id}/bundle`, {
      headers: { authorization: `Bearer ${apiKey}` },
    });
    t.equal(answer.status, 200);
  });

  await t.test('processes that start later report and reject the same', async (t) => {
    await worker.stop();
    await api.stop();
    api = await installation.startApi();
    worker = await installation.startWorker();
    t.equal((await create()).status, 503);
    for (const each of [api, worker]) {
      t.equal((await readiness(each)).status, 503);
      await until('a fatal line is there', () => each.lines.some(({ level }) => level === 'fatal'));
    }
  });

  await t.test('nothing has been signed, and the register is unchanged', async (t) => {
    t.same(await signed(), restored);
    t.equal(root(), register);
  });

  await t.test('a new epoch continues under a new origin, and old bundles verify as before', async (t) => {
    t.match(await attestLog('new-epoch', '--environment', 'live'), {
      code: 0,
      stdout: /live-2\.log\.example\.com/,
    });
    await until('creations are taken again', async () => (await create()).status === 201);
    acknowledged.splice(0, acknowledged.length, ...kept);
    await submit(3);
    await untilWitnessed(pool);
    for (const each of [api, worker]) t.equal((await readiness(each)).status, 200);
    const metrics = await (await fetch(`${worker.opsUrl}/metrics`)).text();
    const old = metrics.split('\n').filter((line) => line.includes(`{log="${ORIGIN}"}`));
    t.same(old, [`attest_log_frozen{log="${ORIGIN}"} 0`], 'the gauges of the old log have ended');
    // The old log's register goes on saying what was lost with the newer database; the rest is to agree.
    t.equal(root(), register);
    const [newest] = await pool<{ size: number; root: string }[]>`
      SELECT tree_size AS size, encode(root_hash, 'hex') AS root FROM batch WHERE log_id = 1
      ORDER BY tree_size DESC LIMIT 1`;
    await rename(
      join(entry, (await readdir(entry))[0]!),
      join(entry, `${newest?.size}-${newest?.root}-${'0'.repeat(64)}`),
    );
    await scene.assertConsistent(t, acknowledged);
  });
});
