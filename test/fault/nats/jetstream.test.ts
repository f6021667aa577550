/** JetStream away, empty or deleted: work takes longer and is done all the same, because the tables know of it. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startLoad } from '../../support/calling/load.js';
import { setScene } from '../../support/fault-fixture.js';
import { until } from '../../support/until.js';
import { letLeasesRunOut, untilWitnessed } from '../../support/wait-for-idle.js';

const scene = await setScene(t);
const { installation, pool, servers, apiKey } = scene;
const { nats } = servers;
await nats.stop();
const api = await installation.startApi();
let worker = await installation.startWorker();

/** Submits so many, every one at the first attempt, and waits until all of them are witnessed. */
async function submitAll(t: Test, count = 60): Promise<void> {
  const load = startLoad({ apis: () => [api.baseUrl], apiKey, clients: 4, most: count });
  await load.more(count);
  await load.stop();
  await letLeasesRunOut(pool);
  await untilWitnessed(pool);
  t.same([...load.statuses.keys()], [201]);
  await scene.assertConsistent(t, load.acknowledged);
}

t.test('without nats-server from the start everything is witnessed', async (t) => {
  await submitAll(t);
  for (const { opsUrl } of [api, worker]) t.equal((await fetch(`${opsUrl}/readyz`)).status, 200);
});

t.test('a worker ends cleanly while nats-server is unavailable', async () => {
  await worker.stop();
  worker = await installation.startWorker();
});

t.test('processes that started without nats-server use it once it is up', async (t) => {
  await nats.start();
  await until('the stream is there', () => nats.withManager((manager) => manager.streams.info('JOBS')));
  await submitAll(t);
});

t.test('a worker that lost nats-server ends cleanly', async () => {
  await nats.stop();
  await until('the worker has noticed', () =>
    worker.lines.some(({ msg }) => msg.includes('JetStream is away')),
  );
  await worker.stop();
  worker = await installation.startWorker();
  await nats.start();
});

t.test('a deleted stream or consumer is created again, and nothing is lost', async (t) => {
  await until('the stream is there', () =>
    nats.withManager((manager) => manager.consumers.info('JOBS', 'seal')),
  );
  await nats.withManager((manager) => manager.consumers.delete('JOBS', 'seal'));
  await submitAll(t);
  await nats.withManager((manager) => manager.streams.delete('JOBS'));
  await submitAll(t);
  await until('the stream is there', () =>
    nats.withManager((manager) => manager.consumers.info('JOBS', 'seal')),
  );
});

t.test("JetStream's store may be deleted under the running server", async (t) => {
  await rm(join(nats.dir, 'jetstream'), { recursive: true, force: true, maxRetries: 10 });
  await submitAll(t);
  await nats.kill();
  await nats.start();
  await submitAll(t);
});

t.test('both end cleanly', async () => {
  await worker.stop();
  await api.stop();
});
