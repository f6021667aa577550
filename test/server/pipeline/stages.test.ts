import { rename } from 'node:fs/promises';
import t, { type Test } from 'tap';
import type { Sql } from '../../../src/server/database/connect.js';
import { type App, startApp } from '../../support/app.js';
import { entryPlace } from '../../support/breaking/register.js';
import { newKey, type TestKey } from '../../support/calling/test-keys.js';
import { until } from '../../support/until.js';
import { letWitnessesBeAsked, untilWitnessed } from '../../support/wait-for-idle.js';

const DIGEST = '13144bf2d6b8f4757e6c11429d1fb281fd229dbf82c0b1a916df221419976e99';

/** What these tests look at of any answer. */
type Answer = {
  status: number;
  headers: Record<string, string>;
  json: {
    id: string;
    status: string;
    log_index?: number;
    error?: { code: string; message: string };
    data: { witnesses: { status: string; last_error: string }[] }[];
  };
};

async function get(app: App, { key }: TestKey, path: string): Promise<Answer> {
  return (await app.rest(path, { apiKey: key })) as unknown as Answer;
}

async function create(
  app: App,
  { key }: TestKey,
  { name = 'left-pad', idempotencyKey }: { name?: string; idempotencyKey?: string } = {},
): Promise<Answer> {
  const metadata = { schema: 'purl', purl: `pkg:npm/${name}@1.3.0` };
  const answer = await app.rest('/v1/attestations', {
    method: 'POST',
    apiKey: key,
    ...(idempotencyKey === undefined ? {} : { headers: { 'idempotency-key': idempotencyKey } }),
    body: { artifact: { sha256: DIGEST }, metadata },
  });
  return answer as unknown as Answer;
}

async function statusOf(app: App, key: TestKey, id: string): Promise<string> {
  return (await get(app, key, `/v1/attestations/${id}`)).json.status;
}

/** Moves every batch into the past, so that its deadline has gone by. */
async function moveDeadline(db: Sql): Promise<void> {
  await db`UPDATE batch SET sealed_at = sealed_at - interval '2 hours', deadline_at = deadline_at - interval '2 hours'`;
}

async function passDeadline({ pool }: App): Promise<void> {
  await moveDeadline(pool);
  await letWitnessesBeAsked(pool);
}

async function transitions({ pool }: App): Promise<number[]> {
  return (await pool<{ status: number }[]>`SELECT status FROM batch_transition ORDER BY at`).map(
    ({ status }) => status,
  );
}

t.test(
  'a batch is partial once its deadline has passed with some of its witnesses, and witnessed when the last has come',
  async (t) => {
    const app = await startApp(t, { witnesses: ['one', 'two'] });
    const key = await newKey(app);
    const [, two] = app.witnesses;
    two!.isBroken = true;
    const { json } = await create(app, key);
    await app.drain();
    t.equal(await statusOf(app, key, json.id), 'queued');
    t.equal((await get(app, key, `/v1/attestations/${json.id}/bundle`)).status, 404);
    await passDeadline(app);
    await until('it is partial', async () => (await statusOf(app, key, json.id)) === 'partial');
    t.equal(await statusOf(app, key, json.id), 'partial');
    t.equal((await get(app, key, `/v1/attestations/${json.id}/bundle`)).status, 200);
    two!.isBroken = false;
    await letWitnessesBeAsked(app.pool);
    await untilWitnessed(app.pool);
    t.equal(await statusOf(app, key, json.id), 'witnessed');
    t.same(await transitions(app), [3, 2], 'each transition is recorded once');
  },
);

t.test('a batch without evidence fails, and is witnessed when the witnesses come back', async (t) => {
  const app = await startApp(t);
  const key = await newKey(app);
  const [only] = app.witnesses;
  only!.isBroken = true;
  const { json } = await create(app, key);
  await app.drain();
  await passDeadline(app);
  await until('it has failed', async () => (await statusOf(app, key, json.id)) === 'failed');
  t.equal(await statusOf(app, key, json.id), 'failed');
  const notReady = await get(app, key, `/v1/attestations/${json.id}/bundle`);
  t.equal(notReady.json.error?.code, 'bundle.not_ready');
  t.notOk('retry-after' in notReady.headers, 'there is nothing to wait for');
  const batch = await get(app, key, '/v1/batches');
  t.match(batch.json.data[0]!.witnesses[1], {
    status: 'failed',
    last_error: 'the request to the witness failed',
  });
  only!.isBroken = false;
  await letWitnessesBeAsked(app.pool);
  await untilWitnessed(app.pool);
  t.equal(await statusOf(app, key, json.id), 'witnessed');
  t.same(await transitions(app), [4, 2]);
});

t.test('an outage of our own fails no batch without an attempt near the deadline', async (t) => {
  const app = await startApp(t);
  const key = await newKey(app);
  const [only] = app.witnesses;
  only!.isBroken = true;
  const { json } = await create(app, key);
  await app.drain();
  await app.pool.begin(async (tx) => {
    // A new attempt number, so that an attempt that is under way records nothing.
    await tx`UPDATE witness_state SET attempt = attempt + 1, leased_until = NULL,
                                      last_failed_at = clock_timestamp() - interval '1 day',
                                      next_attempt_at = clock_timestamp() + interval '1 day'`;
    await moveDeadline(tx);
  });
  await app.drain();
  t.equal(await statusOf(app, key, json.id), 'queued');
  t.same(await transitions(app), []);
});

t.test('one request to a witness that was unavailable covers every batch since', async (t) => {
  const app = await startApp(t);
  const key = await newKey(app);
  const [only] = app.witnesses;
  only!.isBroken = true;
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    ids.push((await create(app, key)).json.id);
    await app.drain();
  }
  only!.isBroken = false;
  await letWitnessesBeAsked(app.pool);
  await untilWitnessed(app.pool);
  for (const id of ids) t.equal(await statusOf(app, key, id), 'witnessed');
  const [{ n } = { n: 0 }] = await app.pool<{ n: number }[]>`SELECT count(*) AS n FROM evidence`;
  t.equal(n, 1);
  const [{ batches } = { batches: 0 }] = await app.pool<
    { batches: number }[]
  >`SELECT count(*) AS batches FROM batch`;
  t.ok(batches >= 2, 'there were several batches');
});

/** What a backup of before the newest batch would have: the batch and its leaves are gone. */
async function restoreOlder({ pool }: App): Promise<void> {
  const [last] = await pool<{ log_id: number; first: number; size: number }[]>`
    SELECT log_id, first_index AS first, tree_size AS size FROM batch ORDER BY tree_size DESC LIMIT 1`;
  await pool.begin(async (tx) => {
    for (const table of ['batch_transition', 'batch_content', 'evidence', 'batch']) {
      await tx`DELETE FROM ${tx(table)} WHERE log_id = ${last!.log_id} AND tree_size = ${last!.size}`;
    }
    await tx`DELETE FROM submission WHERE log_id = ${last!.log_id} AND log_index >= ${last!.first}`;
  });
}

async function sealedTwice(t: Test): Promise<{ app: App; key: TestKey }> {
  const app = await startApp(t);
  const key = await newKey(app);
  for (let i = 0; i < 2; i++) {
    await create(app, key);
    await untilWitnessed(app.pool);
  }
  return { app, key };
}

t.test(
  'a database older than the register freezes the log: nothing is accepted or signed, and it is reported',
  async (t) => {
    const { app, key } = await sealedTwice(t);
    await restoreOlder(app);
    const before = await app.pool`SELECT tree_size FROM batch`;
    await create(app, key);
    await app.drain();
    const refused = await create(app, key);
    t.equal(refused.status, 503);
    t.match(refused.json.error!, { code: 'service.unavailable', message: /frozen/ });
    t.ok('retry-after' in refused.headers);
    t.same(await app.pool`SELECT tree_size FROM batch`, before, 'no batch was sealed');
    const health = await get(app, key, '/v1/service/health');
    t.equal(health.status, 503);
    const [log] = await app.pool<
      { frozen_reason: string }[]
    >`SELECT frozen_reason FROM log WHERE frozen_at IS NOT NULL`;
    t.match(
      log!.frozen_reason,
      /the register has a checkpoint of size 2 with another root than the leaves; the database has leaves up to 2/,
    );
  },
);

t.test(
  'without its register submissions are accepted but not sealed; with it everything continues',
  async (t) => {
    const { app, key } = await sealedTwice(t);
    const place = entryPlace(app.register, 'live.log.example.com');
    await rename(place, `${place}.away`);
    const { status, json } = await create(app, key);
    t.equal(status, 201);
    await until('the worker says so', () =>
      app.recorder.lines.some((line) => line.includes('nothing is sealed without')),
    );
    t.equal(await statusOf(app, key, json.id), 'queued');
    await rename(`${place}.away`, place);
    await untilWitnessed(app.pool);
    t.equal(await statusOf(app, key, json.id), 'witnessed');
  },
);

t.test('one row that the database rejects fails alone', async (t) => {
  const app = await startApp(t);
  const key = await newKey(app);
  await app.pool`ALTER TABLE submission ADD CONSTRAINT no_bad CHECK (metadata NOT LIKE '%bad-row%')`;
  const names = Array.from({ length: 30 }, (_, i) => (i === 7 ? 'bad-row' : `good-${i}`));
  const answers = await Promise.all(names.map((name) => create(app, key, { name })));
  t.same(
    answers.map(({ status }) => status),
    names.map((name) => (name === 'bad-row' ? 500 : 201)),
  );
  t.equal(answers[7]!.json.error?.code, 'service.internal');
  const indexes = answers.flatMap(({ json }) => json.log_index ?? []).sort((a, b) => a - b);
  t.same(
    indexes,
    Array.from({ length: 29 }, (_, i) => i),
    'the others have every index once',
  );
});

t.test('an idempotency key that another session holds keeps only its own caller waiting', async (t) => {
  const app = await startApp(t);
  const key = await newKey(app);
  const holder = await app.pool.reserve();
  t.teardown(() => holder.release());
  await holder`SELECT pg_advisory_lock(hashtextextended(${`${key.id} stuck`}, 0))`;
  const stuck = create(app, key, { idempotencyKey: 'stuck' });
  const strangers = await Promise.all(
    Array.from({ length: 10 }, () => create(app, key, { idempotencyKey: String(Math.random()) })),
  );
  t.same(new Set(strangers.map(({ status }) => status)), new Set([201]), 'strangers are served meanwhile');
  const { status, json, headers } = await stuck;
  t.equal(status, 409);
  t.equal(json.error?.code, 'idempotency.in_progress');
  t.ok('retry-after' in headers);
  await holder`SELECT pg_advisory_unlock_all()`;
  t.equal((await create(app, key, { idempotencyKey: 'stuck' })).status, 201);
});

t.test(
  'problems with the tables of deliveries do not delay sealing, with or without JetStream',
  async (t) => {
    const app = await startApp(t, { natsUrl: 'nats://127.0.0.1:1' });
    const key = await newKey(app);
    const held = await app.pool.reserve();
    await held`BEGIN`;
    await held`SET LOCAL idle_in_transaction_session_timeout = 0`;
    await held`LOCK TABLE webhook`;
    const { json } = await create(app, key);
    await untilWitnessed(app.pool);
    t.equal(await statusOf(app, key, json.id), 'witnessed');
    await held`ROLLBACK`;
    held.release();
  },
);
