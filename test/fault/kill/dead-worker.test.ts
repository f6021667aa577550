/** Work in the hands of a worker that is killed or stopped: another worker takes it within five seconds. */
import t, { type Test } from 'tap';
import type { Pool } from '../../../src/server/database/connect.js';
import { commitOf } from '../../support/breaking/statement-matchers.js';
import { type Load, startLoad } from '../../support/calling/load.js';
import { BUCKET, OWNER, startStore } from '../../support/exports/s3/fixture.js';
import { setScene } from '../../support/fault-fixture.js';
import { isLong } from '../../support/long.js';
import type { ServiceProcess } from '../../support/servers/installation.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';
import { startReceiver } from '../../support/webhooks/receiver.js';
import { submissionsIn } from '../../support/webhooks/webhooks.js';

/** Of the database's clock, from the end of the worker until another has the work. */
const BOUND_MS = 5_000;
/** For the statements and requests of a machine with many other tests under way; a lease's end and the next look take 4 s. */
const LOADED_MS = 1_000;

const scene = await setScene(t, { env: { ALLOW_INSECURE_DESTINATIONS: 'true' } });
const { installation, pool, tsa, apiKey } = scene;
const { proxy } = scene.servers.postgres;
const api = await installation.startApi();
const store = await startStore(t);
const receiver = await startReceiver(t);
const subscription = { url: receiver.url, events: ['attestation.witnessed'] };
receiver.trust((await post('webhooks', subscription)).secret ?? '');
await post('exports', {
  destination: {
    kind: 's3',
    bucket: BUCKET,
    prefix: 'copies',
    endpoint: store.url,
    access_key_id: OWNER.accessKeyId,
    secret_access_key: OWNER.secretAccessKey,
  },
});
let worker = await startWorker();

async function post(path: string, body: object): Promise<{ secret?: string }> {
  const answer = await fetch(`${api.baseUrl}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(await answer.text());
  return (await answer.json()) as { secret?: string };
}

/** Waits until it takes jobs of JetStream. */
async function startWorker(): Promise<ServiceProcess> {
  const started = await installation.startWorker();
  await until('JetStream works', async () =>
    (await (await fetch(`${started.opsUrl}/metrics`)).text()).includes(
      'attest_jetstream_up{client="worker"} 1',
    ),
  );
  return started;
}

/** A piece of work that the only worker holds. */
type Work = {
  /** Postgres ends the held transaction soon: the next worker starts, and is stopped, before. */
  isShort?: true;
  /** Makes the next run of it hang; resolves, once there is work to do, when the worker has it in hand. */
  hold(submit: () => Promise<void>): Promise<void>;
  /** From now on it does not hang. */
  letGo(): void;
  /** Grows when a worker takes or does the work. */
  count(pool: Pool): Promise<number>;
  /** What the work that hung gets now, long after. */
  answerLate(): void;
};

/** @param query selects `n` */
const counting = (query: string) => async (pool: Pool) => {
  const [row] = await pool.unsafe<{ n: number }[]>(query);
  return row?.n ?? 0;
};

function holdSeal(): Work {
  return {
    isShort: true,
    hold: async (submit) => {
      const held = proxy.holdNext('before the request arrives', commitOf('INSERT INTO batch '));
      await submit();
      await held;
    },
    letGo: () => {},
    count: counting('SELECT count(*)::int AS n FROM batch'),
    answerLate: () => {},
  };
}

function holdWitness(): Work {
  return {
    hold: async (submit) => {
      tsa.mood = 'late';
      await submit();
      await until('the witness is asked', () => tsa.waiting() > 0);
    },
    letGo: () => {
      tsa.mood = 'answers';
    },
    count: counting('SELECT sum(attempt)::int AS n FROM witness_state'),
    answerLate: tsa.release,
  };
}

function holdWebhook(): Work {
  const late: (() => void)[] = [];
  return {
    hold: async (submit) => {
      receiver.behave((response) => void late.push(() => response.writeHead(204).end()));
      await submit();
      await until('the event is sent', () => late.length > 0);
    },
    letGo: () => receiver.behave((response) => void response.writeHead(204).end()),
    count: counting('SELECT count(*)::int AS n FROM webhook_delivery WHERE status = 2'),
    answerLate: () => {
      for (const answer of late) answer();
    },
  };
}

function holdShip(): Work {
  let answerLate = () => {};
  const opened = new Promise<void>((resolve) => {
    answerLate = resolve;
  });
  let held = 0;
  return {
    hold: async (submit) => {
      store.fail(({ operation, key }) => {
        if (operation !== 'PutObject' || !key.endsWith('.jsonl')) return undefined;
        held++;
        return { kind: 'hold', until: opened };
      });
      await submit();
      await until('the object is written', () => held > 0);
    },
    letGo: () => store.fail(() => undefined),
    count: counting('SELECT sum(lease)::int AS n FROM export'),
    answerLate,
  };
}

async function submit(): Promise<Load> {
  const load = startLoad({ apis: () => [api.baseUrl], apiKey, clients: 1, most: 1 });
  await load.more(1);
  await load.stop();
  return load;
}

const acknowledged: Load['acknowledged'] = [];

async function measure(t: Test, work: Work, how: 'killed' | 'stopped'): Promise<void> {
  const early = work.isShort && (await startWorker());
  early?.standStill();
  await work.hold(async () => void acknowledged.push(...(await submit()).acknowledged));
  const next = early ?? (await startWorker());
  const before = await work.count(pool);
  next.goOn();
  work.letGo();
  const now = async () =>
    (
      await pool<{ ms: number }[]>`
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms`
    )[0]!.ms;
  const beganMs = await now();
  if (how === 'killed') await worker.kill();
  else worker.standStill();
  await until('another worker has it', async () => (await work.count(pool)) > before);
  const gapMs = Math.round((await now()) - beganMs);
  t.comment(`${gapMs} ms`);
  t.ok(gapMs <= BOUND_MS + LOADED_MS, `${gapMs} ms`);
  worker.goOn();
  work.answerLate();
  await untilWitnessed(pool);
  await until('every event has come', () => {
    const told = new Set(submissionsIn(receiver.received));
    return acknowledged.every(({ id }) => told.has(id));
  });
  const events = new Map(receiver.received.map(({ event }) => [event.data.submission_id, event.id]));
  for (const { event } of receiver.received)
    t.equal(event.id, events.get(event.data.submission_id), 'one id');
  await scene.assertConsistent(t, acknowledged);
  await worker.kill();
  worker = next;
}

const CASES: [what: string, how: 'killed' | 'stopped', hold: () => Work, isLong?: true][] = [
  ['an event', 'killed', holdWebhook],
  ['a request to a witness', 'stopped', holdWitness],
  ['a batch', 'stopped', holdSeal],
  ['an object of an export', 'killed', holdShip],
  ['an event', 'stopped', holdWebhook, true],
  ['a request to a witness', 'killed', holdWitness, true],
  ['a batch', 'killed', holdSeal, true],
  ['an object of an export', 'stopped', holdShip, true],
];

for (const [what, how, hold] of CASES.filter(([, , , onlyLong]) => isLong || onlyLong === undefined))
  t.test(`${what} of a worker that is ${how} waits for five seconds at most`, (t) => measure(t, hold(), how));
