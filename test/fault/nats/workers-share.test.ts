/** Consumers scale with workers: of three, each takes a share of the work that one does alone. */
import t from 'tap';
import { startLoad } from '../../support/calling/load.js';
import { setScene } from '../../support/fault-fixture.js';
import { makeUnlimitedKey, type ServiceProcess } from '../../support/servers/installation.js';
import { until } from '../../support/until.js';
import { startReceiver } from '../../support/webhooks/receiver.js';
import { submissionsIn } from '../../support/webhooks/webhooks.js';

const PROJECTS = 12;

const { installation, pool } = await setScene(t, { env: { ALLOW_INSECURE_DESTINATIONS: 'true' } });
const api = await installation.startApi();
const receiver = await startReceiver(t);
const keys = await Promise.all(Array.from({ length: PROJECTS }, () => makeUnlimitedKey(pool)));
for (const apiKey of keys) {
  const answer = await fetch(`${api.baseUrl}/v1/webhooks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: receiver.url, events: ['attestation.witnessed'] }),
  });
  receiver.trust(((await answer.json()) as { secret: string }).secret);
}

async function metric({ opsUrl }: ServiceProcess, name: string): Promise<number> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

async function startWorker(): Promise<ServiceProcess> {
  const worker = await installation.startWorker();
  await until('JetStream works', async () => (await metric(worker, 'attest_jetstream_up')) === 1);
  return worker;
}

const attempts = (workers: readonly ServiceProcess[]) =>
  Promise.all(workers.map((worker) => metric(worker, 'attest_webhook_attempts_total')));

/** A submission of each project; waits until their events have come. */
async function submitAll(): Promise<void> {
  const loads = keys.map((apiKey) => startLoad({ apis: () => [api.baseUrl], apiKey, clients: 1, most: 1 }));
  await Promise.all(loads.map((load) => load.more(1)));
  await Promise.all(loads.map((load) => load.stop()));
  const ids = loads.flatMap(({ acknowledged }) => acknowledged.map(({ id }) => id));
  await until('every event has come', () => {
    const told = new Set(submissionsIn(receiver.received));
    return ids.every((id) => told.has(id));
  });
}

const first = await startWorker();

t.test('one worker does all of the work', async (t) => {
  await submitAll();
  await until('all is recorded', async () => (await attempts([first]))[0] === PROJECTS);
  t.equal(receiver.received.length, PROJECTS);
});

t.test('of three workers each does a share, and nothing twice', async (t) => {
  const workers = [first, await startWorker(), await startWorker()];
  const [before = 0] = await attempts([first]);
  await until('each has sent events', async () => {
    await submitAll();
    const [one = 0, ...others] = await attempts(workers);
    return one > before && others.every((count) => count > 0);
  });
  await until('all is recorded', async () => {
    const counts = await attempts(workers);
    return counts.reduce((sum, count) => sum + count) === receiver.received.length;
  });
  t.equal(new Set(receiver.received.map(({ event }) => event.id)).size, receiver.received.length);
  t.comment(`attempts: ${(await attempts(workers)).join(', ')}`);
  for (const worker of workers) await worker.stop();
});
