/** Events through crashes: each is delivered at least once, under one id, and to nobody else. */
import t from 'tap';
import type { Break } from '../../support/breaking/proxy.js';
import { commitOf, type Matching, statement } from '../../support/breaking/statement-matchers.js';
import { acknowledgement, newCreation, send, startLoad } from '../../support/calling/load.js';
import { makeServerTls } from '../../support/certificates/server-tls.js';
import { setScene } from '../../support/fault-fixture.js';
import { someOf } from '../../support/long.js';
import { makeUnlimitedKey, type ServiceProcess } from '../../support/servers/installation.js';
import { until } from '../../support/until.js';
import { letLeasesRunOut, untilGone, untilWitnessed, WORKERS } from '../../support/wait-for-idle.js';
import { type Receiver, startReceiver } from '../../support/webhooks/receiver.js';
import { submissionsIn } from '../../support/webhooks/webhooks.js';

const { tls, caFile } = await makeServerTls(t);
const scene = await setScene(t, {
  env: { ALLOW_INSECURE_DESTINATIONS: 'true', NODE_EXTRA_CA_CERTS: caFile },
});
const { installation, pool, servers, apiKey } = scene;
const { proxy } = servers.postgres;
const api = await installation.startApi();
const strangerKey = await makeUnlimitedKey(pool);
const mine = await startReceiver(t, { tls });
const theirs = await startReceiver(t, { tls });
await subscribe(apiKey, mine);
await subscribe(strangerKey, theirs);
await pool`UPDATE project SET webhook_deliveries_per_second = 10000, webhook_deliveries_burst = 10000`;

async function subscribe(key: string, receiver: Receiver): Promise<void> {
  const answer = await fetch(`${api.baseUrl}/v1/webhooks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: receiver.url, events: ['attestation.witnessed'] }),
  });
  if (answer.status !== 201) throw new Error(await answer.text());
  receiver.trust(((await answer.json()) as { secret: string }).secret);
}

/** @returns the submission's id */
async function submit(key: string): Promise<string> {
  const creation = newCreation();
  const answer = await send(api.baseUrl, key, creation);
  if (answer.status !== 201) throw new Error(`not stored: ${JSON.stringify(answer.body)}`);
  return acknowledgement(creation, answer).id;
}

async function untilDelivered(receiver: Receiver, ids: readonly string[]): Promise<void> {
  await until('everything is told', () => {
    const told = new Set(submissionsIn(receiver.received));
    return ids.every((id) => told.has(id));
  });
  await until('every attempt is recorded', async () => {
    const [row] = await pool<{ n: number }[]>`
      SELECT (SELECT count(*) FROM webhook_delivery WHERE status <> 2)::int + (SELECT count(*) FROM webhook_range)::int AS n`;
    return row?.n === 0;
  });
}

function idsOf({ received }: Receiver, submission: string): string[] {
  return received.filter(({ event }) => event.data.submission_id === submission).map(({ event }) => event.id);
}

const LOST: Break = 'before the request arrives';
const UNKNOWN: Break = 'before the answer arrives';
const POINTS: [what: string, when: Break, matching: Matching, times: number][] = [
  ['events are put on their way', UNKNOWN, commitOf('INSERT INTO webhook_range'), 1],
  ['deliveries are claimed', UNKNOWN, statement('claim_webhook_deliveries'), 1],
  ['an attempt is recorded', LOST, statement('record_webhook_attempts'), 2],
  ['an attempt is recorded', UNKNOWN, statement('record_webhook_attempts'), 1],
];

for (const [what, when, matching, times] of someOf(POINTS, 2)) {
  t.test(`the next worker delivers the event of one killed while ${what}, ${when}`, async (t) => {
    const id = await submit(apiKey);
    const held = proxy.holdNext(when, matching);
    const doomed = await installation.startWorker();
    await held;
    await doomed.kill();
    await untilGone(pool, WORKERS);
    await servers.nats.forget();
    await letLeasesRunOut(pool);
    const next = await installation.startWorker();
    await untilDelivered(mine, [id]);
    await next.stop();
    const told = idsOf(mine, id);
    t.equal(told.length, times, `sent ${times} times`);
    t.equal(new Set(told).size, 1, 'under one id');
  });
}

t.test('the next worker delivers the event of one killed while the endpoint processes it', async (t) => {
  const id = await submit(apiKey);
  mine.behave(() => {});
  const doomed = await installation.startWorker();
  await until('it is sent', () => idsOf(mine, id).length === 1);
  await doomed.kill();
  await untilGone(pool, WORKERS);
  mine.behave((response) => void response.writeHead(204).end());
  await servers.nats.forget();
  await letLeasesRunOut(pool);
  const next = await installation.startWorker();
  await untilDelivered(mine, [id]);
  await next.stop();
  const told = idsOf(mine, id);
  t.same([told.length, new Set(told).size], [2, 1]);
});

t.test(
  'under load, with everything killed in turn, each event comes at least once, under one id',
  async (t) => {
    const workers: ServiceProcess[] = [await installation.startWorker(), await installation.startWorker()];
    const load = (key: string) =>
      startLoad({ apis: () => [api.baseUrl], apiKey: key, clients: 3, most: 150 });
    const [own, other] = [load(apiKey), load(strangerKey)];
    const faults = [
      async () => {
        await workers[0]?.kill();
        workers[0] = await installation.startWorker();
      },
      async () => {
        await servers.postgres.kill();
        await servers.postgres.start();
      },
      async () => {
        await servers.nats.kill();
        await servers.nats.start();
      },
      async () => {
        await workers[1]?.kill();
        workers[1] = await installation.startWorker();
      },
    ];
    for (const fault of faults) {
      await Promise.all([own.more(20), other.more(20)]);
      await fault();
    }
    await Promise.all([own.stop(), other.stop()]);
    await letLeasesRunOut(pool);
    await untilWitnessed(pool);
    await letLeasesRunOut(pool);
    const [ownIds, otherIds] = [own, other].map(({ acknowledged }) => acknowledged.map(({ id }) => id));
    await untilDelivered(mine, ownIds ?? []);
    await untilDelivered(theirs, otherIds ?? []);
    for (const worker of workers) await worker.stop();

    const eventOf = new Map<string, string>();
    for (const { event } of [...mine.received, ...theirs.received]) {
      const submission = String(event.data.submission_id);
      t.equal(eventOf.get(submission) ?? event.id, event.id, 'one id per submission');
      eventOf.set(submission, event.id);
    }
    t.equal(new Set(eventOf.values()).size, eventOf.size, 'and one submission per id');
    const [foreign] = await pool<{ n: number }[]>`
    SELECT count(*)::int AS n FROM named_submission s JOIN webhook w ON w.project_id <> s.project_id
    WHERE (w.url = ${mine.url} AND s.id = ANY(${submissionsIn(mine.received)}))
       OR (w.url = ${theirs.url} AND s.id = ANY(${submissionsIn(theirs.received)}))`;
    t.equal(foreign?.n, 0, 'no event of a foreign submission');
  },
);
