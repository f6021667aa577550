/** SIGKILL at exact points: while a statement is on its way, or has taken effect and nobody has been told. */
import t from 'tap';
import type { Break } from '../../support/breaking/proxy.js';
import { commitOf, type Matching, statement } from '../../support/breaking/statement-matchers.js';
import { acknowledgement, newCreation, send } from '../../support/calling/load.js';
import { setScene } from '../../support/fault-fixture.js';
import type { Acknowledged } from '../../support/judging/consistent.js';
import { someOf } from '../../support/long.js';
import { until } from '../../support/until.js';
import { letLeasesRunOut, untilGone, untilWitnessed, WORKERS } from '../../support/wait-for-idle.js';
import { startReceiver } from '../../support/webhooks/receiver.js';

const scene = await setScene(t, { env: { ALLOW_INSECURE_DESTINATIONS: 'true' } });
const receiver = await startReceiver(t);
const { installation, pool, servers, tsa, apiKey } = scene;
const { proxy } = servers.postgres;
const acknowledged: Acknowledged[] = [];
let api = await installation.startApi();

async function submit(): Promise<void> {
  const creation = newCreation();
  acknowledged.push(acknowledgement(creation, await send(api.baseUrl, apiKey, creation)));
}

/** Waits until everything is witnessed and the subscription has been told of each that was. */
async function untilDelivered(): Promise<void> {
  await letLeasesRunOut(pool);
  await untilWitnessed(pool);
  await until('every event has arrived', () => {
    const told = new Set(receiver.received.map(({ event }) => event.data.submission_id));
    return acknowledged.every(({ id }) => told.has(id));
  });
}

const subscribed = await fetch(`${api.baseUrl}/v1/webhooks`, {
  method: 'POST',
  headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
  body: JSON.stringify({ url: receiver.url, events: ['attestation.witnessed'] }),
});
t.equal(subscribed.status, 201);
receiver.trust(((await subscribed.json()) as { secret: string }).secret);

const BREAKS: Break[] = ['before the request arrives', 'before the answer arrives'];

for (const when of BREAKS) {
  t.test(
    `a create retried after its API was killed while storing, ${when}, returns one submission`,
    async (t) => {
      const creation = newCreation();
      const held = proxy.holdNext(when, (sent) => sent.includes(creation.idempotencyKey ?? ''));
      const answer = send(api.baseUrl, apiKey, creation);
      await held;
      await api.kill();
      t.equal((await answer).status, 'broken');
      api = await installation.startApi();
      const again = await send(api.baseUrl, apiKey, creation);
      t.equal(again.status, 201);
      const isStored = when === 'before the answer arrives';
      t.equal(again.headers.get('idempotent-replayed'), isStored ? 'true' : null);
      acknowledged.push(acknowledgement(creation, again));
      const [row] = await pool`
      SELECT count(*) AS n FROM submission WHERE artifact_sha256 = decode(${creation.artifactSha256}, 'hex')`;
      t.equal(row?.n, 1);
    },
  );
}

const POINTS: [what: string, matching: () => Matching][] = [
  ['a batch is committed', () => commitOf('INSERT INTO batch ')],
  ['evidence is committed', () => commitOf('INSERT INTO evidence')],
  ['deliveries are claimed', () => statement('claim_webhook_deliveries')],
  ['a batch is marked as published', () => statement('SET registered_at')],
  ['a witness is leased', () => statement('SET attempt = attempt + 1')],
  ['a batch is settled', () => statement('INSERT INTO batch_transition')],
  ['events are put on their way', () => commitOf('SET notified = true')],
  ['an attempt is recorded', () => statement('record_webhook_attempts')],
];

for (const [what, matching] of someOf(POINTS, 3)) {
  for (const when of someOf(BREAKS.toReversed(), 1)) {
    t.test(`the next worker completes the job of one killed while ${what}, ${when}`, async (t) => {
      await submit();
      const held = proxy.holdNext(when, matching());
      const doomed = await installation.startWorker();
      await held;
      await doomed.kill();
      await untilGone(pool, WORKERS);
      await servers.nats.forget();
      const next = await installation.startWorker();
      await untilDelivered();
      await next.stop();
      await scene.assertConsistent(t, acknowledged);
    });
  }
}

t.test('the next worker requests a witness again after one was killed during its request', async (t) => {
  await submit();
  tsa.mood = 'late';
  const doomed = await installation.startWorker();
  await until('the witness is asked', () => tsa.waiting() > 0);
  await doomed.kill();
  tsa.mood = 'answers';
  tsa.release();
  const next = await installation.startWorker();
  await untilDelivered();
  await next.stop();
  await scene.assertConsistent(t, acknowledged);
});
