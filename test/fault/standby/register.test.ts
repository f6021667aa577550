/** The checkpoint register beside a database with a standby: it is never ahead of what the standby has, nor left behind. */
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { rootOfLeafHashes } from '../../../src/proof/log/merkle.js';
import type { Pool } from '../../../src/server/database/connect.js';
import { type App, startApp } from '../../support/app.js';
import { readEntry, setEarlierEntry } from '../../support/breaking/register.js';
import { startStandbyPair } from '../../support/standby/standby-pair.js';
import { until } from '../../support/until.js';
import { assertKept, openClient } from './client.js';

const ORIGIN = 'live.log.example.com';
/** How long the worker tries to seal and to publish what is not replicated. */
const TRYING_MS = 5_000;

const registered = ({ register }: App) => Number(readEntry(register, ORIGIN).split(' ')[0]);

async function published({ rest }: App): Promise<number> {
  const { body } = await rest('/verify/log/live/checkpoint');
  return Number(body.toString().split('\n')[1]);
}

async function sealed(pool: Pool): Promise<number> {
  const [row] = await pool<{ size: number }[]>`SELECT coalesce(max(tree_size), 0) AS size FROM batch`;
  return row?.size ?? 0;
}

t.test('nothing is registered or published that the standby lacks', async (t) => {
  const pair = await startStandbyPair(t);
  const app = await startApp(t, { databaseUrl: pair.url });
  const client = await openClient(app);
  for (let i = 0; i < 3; i++) await client.makeSubmission();
  await app.drain();
  t.equal(registered(app), 3);
  pair.takeStandbyAway();
  const creating = client.create(true)();
  await pair.untilCommitsWait();
  const endMs = Date.now() + TRYING_MS;
  while (Date.now() < endMs) {
    await pair.cancelWaits();
    await delay(50);
  }
  t.ok((await sealed(pair.primary)) >= 3);
  const has = await sealed(pair.standby);
  t.ok(registered(app) <= has, `the register has ${registered(app)}, the standby ${has}`);
  const shown = await published(app);
  t.ok(shown <= has, `the public log has ${shown}, the standby ${has}`);
  await pair.promoteStandby();
  await creating;
  await assertKept(t, app, client);
});

/** Has the register hold a checkpoint of a size that no batch has. */
async function putAhead(app: App, size: number, changeRoot: (root: Buffer) => Buffer): Promise<void> {
  const leaves = await app.pool<{ hash: Buffer }[]>`
    SELECT leaf_hash AS hash FROM submission WHERE log_index < ${size} ORDER BY log_index`;
  const root = Buffer.from(rootOfLeafHashes(leaves.map(({ hash }) => hash)));
  setEarlierEntry(app.register, ORIGIN, size, changeRoot(root).toString('hex'));
}

const frozen = async ({ pool }: App) => {
  const [log] = await pool<{ reason: string }[]>`
    SELECT frozen_reason AS reason FROM log WHERE frozen_at IS NOT NULL`;
  return log?.reason;
};

async function withUnsealed(t: Parameters<typeof startApp>[0]) {
  const app = await startApp(t);
  const client = await openClient(app);
  for (let i = 0; i < 3; i++) await client.makeSubmission();
  await app.drain();
  const unhold = await app.holdSealing();
  for (let i = 0; i < 2; i++) await client.makeSubmission();
  return { app, client, unhold };
}

t.test('a batch that is registered and was not replicated is written again', async (t) => {
  const { app, client, unhold } = await withUnsealed(t);
  await putAhead(app, 4, (root) => root);
  await unhold();
  await until('the batch is there', async () => (await sealed(app.pool)) >= 4, 30_000);
  t.same(await app.pool`SELECT FROM batch WHERE tree_size = 4`, [{}], 'it ends where the register says');
  await assertKept(t, app, client);
});

t.test(
  'leaves that give another root, and leaves that are missing, freeze the log and are named',
  async (t) => {
    const other = await withUnsealed(t);
    await putAhead(other.app, 4, (root) => root.reverse());
    await other.unhold();
    const reason = await until('the log is frozen', () => frozen(other.app));
    t.match(reason, /leaves up to 5 and batches up to 3$/);
    t.match(reason, /another root/);
    const fewer = await withUnsealed(t);
    await putAhead(fewer.app, 6, (root) => root);
    await fewer.unhold();
    const missing = await until('the log is frozen', () => frozen(fewer.app));
    t.match(missing, /size 6/);
    t.match(missing, /leaves up to 5 and batches up to 3$/);
  },
);
