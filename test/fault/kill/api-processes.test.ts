/** Several API processes on one port: killed, replaced and stopped while clients submit. */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import t, { type Test } from 'tap';
import { type Load, startLoad } from '../../support/calling/load.js';
import { setScene } from '../../support/fault-fixture.js';
import type { ServiceProcess } from '../../support/servers/installation.js';
import { until } from '../../support/until.js';
import { letLeasesRunOut, untilWitnessed } from '../../support/wait-for-idle.js';

const scene = await setScene(t, { env: { API_PROCESSES: '2' } });
const { installation, pool, apiKey } = scene;
const worker = await installation.startWorker();
const api = await installation.startApi();
let serving = api;

/** The pids of the processes that serve, by what the log says of them. */
function findServing({ lines }: ServiceProcess): number[] {
  const pids = new Set<number>();
  for (const { msg, api_pid, replaced_pid } of lines) {
    if (/^an API process (serves|was replaced)/.test(msg)) pids.add(Number(api_pid));
    if (msg === 'an API process died; starting another') pids.delete(Number(api_pid));
    pids.delete(Number(replaced_pid));
  }
  return [...pids];
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${api.opsUrl}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(name));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

/** The kernel chooses the process that accepts a connection. */
async function getOnNewConnection(url: string): Promise<void> {
  const [response] = (await once(get(url, { agent: false }), 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'close');
}

const load = () => startLoad({ apis: () => [serving.baseUrl], apiKey, clients: 6, most: 400 });

async function assertNothingLost(t: Test, { acknowledged }: Load): Promise<void> {
  await letLeasesRunOut(pool);
  await untilWitnessed(pool);
  await scene.assertConsistent(t, acknowledged);
}

t.test('two processes share a port, an ops listener and a log', async (t) => {
  const running = load();
  await running.more(60);
  await running.stop();
  t.same([...running.statuses.keys()], [201]);
  t.equal(findServing(api).length, 2);
  t.equal((await fetch(`${api.opsUrl}/readyz/live`)).status, 200);
  t.equal(await metric('attest_api_processes_ready'), 2);
  const counted = await metric('attest_requests_total{rpc="AttestationService/CreateAttestation"');
  t.equal(counted, running.acknowledged.length, 'the metrics are those of both');
  const logged = () => new Set(api.lines.filter(({ msg }) => msg === 'request').map(({ pid }) => pid));
  await until('each has accepted a connection', async () => {
    await getOnNewConnection(`${api.baseUrl}/v1/service/health`);
    return logged().size === 2;
  });
  t.same([...logged()].sort(), findServing(api).sort(), 'both answer, and say so in the log');
});

t.test('a process killed under load loses no acknowledged submission, and restarts', async (t) => {
  const running = load();
  await running.more(20);
  const [killed = 0] = findServing(api);
  process.kill(killed, 'SIGKILL');
  await until('another serves', () => {
    const serving = findServing(api);
    return serving.length === 2 && !serving.includes(killed);
  });
  await running.more(20);
  await running.stop();
  t.equal(await metric('attest_api_processes_died_total'), 1);
  await assertNothingLost(t, running);
});

t.test('they are replaced one by one without a broken connection', async (t) => {
  const before = findServing(api);
  const running = load();
  await running.more(20);
  process.kill(api.pid, 'SIGUSR2');
  await until('all are replaced', () =>
    api.lines.some(({ msg }) => msg === 'the API processes were replaced'),
  );
  await running.more(20);
  await running.stop();
  t.same([...running.statuses.keys()], [201]);
  t.equal(findServing(api).length, 2);
  t.notOk(before.some(isRunning));
  await assertNothingLost(t, running);
});

t.test('SIGTERM ends all of them, and lets them answer first', async (t) => {
  const pids = findServing(api);
  const running = load();
  await running.more(20);
  await api.stop();
  t.notOk(pids.some(isRunning));
  serving = await installation.startApi();
  await running.stop();
  await assertNothingLost(t, running);
});

t.test('they end when the process that started them is killed', async () => {
  const pids = findServing(serving);
  await serving.kill();
  await until('none is left', () => !pids.some(isRunning));
  await worker.stop();
});
