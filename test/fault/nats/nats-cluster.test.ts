/** A cluster of three nats-servers: one may die, and what two of them cannot do is done from the tables. */
import t, { type Test } from 'tap';
import { startLoad } from '../../support/calling/load.js';
import { runHere } from '../../support/calling/run-cli.js';
import { setScene } from '../../support/fault-fixture.js';
import type { ServiceProcess } from '../../support/servers/installation.js';
import { startNatsCluster } from '../../support/servers/nats-cluster.js';
import { until } from '../../support/until.js';
import { letWitnessesBeAsked, untilWitnessed } from '../../support/wait-for-idle.js';

const cluster = await startNatsCluster(t);
const { installation, pool, apiKey, assertConsistent } = await setScene(t, {
  env: { NATS_URL: cluster.url, NATS_REPLICAS: '3' },
});
const api = await installation.startApi();
const worker = await installation.startWorker();

async function submitAll(t: Test): Promise<void> {
  const load = startLoad({ apis: () => [api.baseUrl], apiKey, clients: 4, most: 60 });
  await load.more(60);
  await load.stop();
  await letWitnessesBeAsked(pool);
  await untilWitnessed(pool);
  t.same([...load.statuses.keys()], [201]);
  await assertConsistent(t, load.acknowledged);
}

/** The values of a gauge of a process, one for each client. */
async function gauge({ opsUrl }: ServiceProcess, name: string): Promise<string[]> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  return text.split('\n').filter((line) => line.startsWith(`${name}{`));
}

const untilWorking = (value: 0 | 1) =>
  until(`JetStream's gauge is ${value}`, async () => {
    const lines = [
      ...(await gauge(worker, 'attest_jetstream_up')),
      ...(await gauge(api, 'attest_jetstream_up')),
    ];
    return lines.length === 2 && lines.every((line) => line.endsWith(` ${value}`));
  });

/** Waits until `attest doctor` finds this of NATS; servers that elect a leader do not answer for seconds. */
async function untilDoctorSays(status: string, detail: RegExp): Promise<void> {
  await until(`the doctor says ${status}, ${detail}`, async () => {
    const line = await doctorLine();
    return line.status === status && detail.test(line.detail);
  });
}

async function doctorLine(): Promise<{ status: string; detail: string }> {
  const { stdout } = await runHere(['doctor', '--json'], { env: installation.env });
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  return lines.find(({ check }) => check === 'nats');
}

const count = (text: string) => worker.lines.filter(({ msg }) => msg.includes(text)).length;

t.test('the stream is kept by as many servers as was set', async (t) => {
  await untilWorking(1);
  const { config } = await cluster.withManager((manager) => manager.streams.info('JOBS'));
  t.equal(config.num_replicas, 3);
  await untilDoctorSays('ok', /JetStream stores \d+ bytes on 3 servers$/);
  await submitAll(t);
});

t.test('one server dies, the one that leads the stream', async (t) => {
  const { cluster: info } = await cluster.withManager((manager) => manager.streams.info('JOBS'));
  const leader = cluster.nodes.find(({ name }) => name === info?.leader);
  await leader?.kill();
  await submitAll(t);
  await untilWorking(1);
  await untilDoctorSays('warning', new RegExp(`keep it, ${leader?.name} do not keep up: start them`));
  await submitAll(t);
  await leader?.start();
  await untilWorking(1);
});

t.test(
  'with one server left a connection stays open, and JetStream is not reported as available',
  async (t) => {
    const [left, ...others] = cluster.nodes;
    t.ok(left);
    for (const node of others) await node.kill();
    await untilWorking(0);
    await until('the worker has said so', () => count('JetStream is away') > 0);
    await until('it is connected', async () =>
      (await gauge(worker, 'attest_nats_connected')).every((line) => line.endsWith(' 1')),
    );
    const back = count('JetStream is back');
    await submitAll(t);
    t.equal(count('JetStream is back'), back);
    for (const node of others) await node.start();
    await untilWorking(1);
    await until('the worker says that it is back', () => count('JetStream is back') > back);
    await submitAll(t);
  },
);

t.test('both end cleanly', async () => {
  await worker.stop();
  await api.stop();
});

t.test('the doctor names a stream with too few servers, and none', async () => {
  await cluster.withManager(async ({ streams }) => {
    await until('one server keeps it', async () => {
      const { config, cluster: info } = await streams.info('JOBS');
      if (config.num_replicas !== 1) await streams.update('JOBS', { ...config, num_replicas: 1 });
      return (info?.replicas ?? []).length === 0 && info?.leader !== undefined;
    });
    await untilDoctorSays('warning', / on 1 of NATS_REPLICAS=3 servers/);
    await until('it is deleted', async () => {
      await streams.delete('JOBS').catch(() => undefined);
      return (await streams.names().next()).length === 0;
    });
    await untilDoctorSays('ok', /no stream yet: a worker makes it$/);
  });
});
