import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { request } from 'undici';
import { createLogger } from '../../../src/server/core/logger.js';
import { createMetrics, type Metrics } from '../../../src/server/ops/metrics.js';
import { type Check, createOps } from '../../../src/server/ops/ops-listener.js';

type Ops = {
  get: (path: string, method?: 'GET' | 'HEAD' | 'POST') => Promise<{ status: number; body: string }>;
  metrics: Metrics;
};

async function startOps(t: Test, checks: readonly Check[] = []): Promise<Ops> {
  const metrics = createMetrics();
  const log = createLogger({ level: 'silent' });
  const ops = createOps({ metrics, checks, log, checkTimeoutMs: 50 });
  const { port } = await ops.listen({ host: '127.0.0.1', port: 0 });
  t.teardown(ops.close);
  return {
    metrics,
    async get(path, method = 'GET') {
      const { statusCode, body } = await request(`http://127.0.0.1:${port}${path}`, { method });
      return { status: statusCode, body: await body.text() };
    },
  };
}

t.test('a process that responds is alive while its checks fail', async (t) => {
  const { get } = await startOps(t, [{ name: 'postgres', check: async () => 'down' }]);
  t.match(await get('/livez'), { status: 200 });
  t.match(await get('/livez?verbose'), { status: 200 });
  t.same(await get('/livez', 'HEAD'), { status: 200, body: '' });
});

t.test('a process is ready when every check passes', async (t) => {
  const { get } = await startOps(t, [
    { name: 'postgres', check: async () => {} },
    { name: 'keys', check: async () => 5 },
  ]);
  t.match(await get('/readyz'), { status: 200, body: '{"status":"ready"}\n' });
});

t.test('a process that is not ready lists its failed checks', async (t) => {
  let aborted = false;
  const { get } = await startOps(t, [
    { name: 'postgres', check: async () => Promise.reject(new Error('connection refused')) },
    { name: 'queue', check: async () => {} },
    { name: 'log', check: async () => 'the log is frozen' },
    {
      name: 'register',
      asks: 'the register',
      check: (signal) =>
        new Promise(() => {
          signal.addEventListener('abort', () => {
            aborted = true;
          });
        }),
    },
    {
      name: 'careless',
      check: () => {
        throw new Error('thrown, not rejected');
      },
    },
  ]);
  const { status, body } = await get('/readyz');
  t.equal(status, 503);
  t.same(JSON.parse(body).reasons, [
    { name: 'postgres', reason: 'connection refused' },
    { name: 'log', reason: 'the log is frozen' },
    { name: 'register', reason: 'no answer from the register within 50 ms' },
    { name: 'careless', reason: 'thrown, not rejected' },
  ]);
  t.ok(aborted);
});

t.test('a warning is listed and leaves the process ready', async (t) => {
  const { get } = await startOps(t, [
    { name: 'standby', isWarning: true, check: async () => 'it does not answer' },
    { name: 'live', environment: 'live', check: async () => {} },
  ]);
  for (const path of ['/readyz', '/readyz/live']) {
    const { status, body } = await get(path);
    t.equal(status, 200);
    t.same(JSON.parse(body), {
      status: 'ready',
      reasons: [{ name: 'standby', reason: 'it does not answer' }],
    });
  }
});

t.test('metrics count requests, time them, and read gauges when scraped', async (t) => {
  const { get, metrics } = await startOps(t);
  let depth = 3;
  metrics.addGauge({ name: 'attest_depth', help: 'Depth', read: () => depth });
  metrics.addGauge({
    name: 'attest_by_stage',
    help: 'By stage',
    labelNames: ['stage'],
    read: async () => [{ labels: { stage: depth === 3 ? 'seal' : 'settle' }, value: depth }],
  });
  metrics.addCounter('attest_done_total', 'Done').add(4);
  metrics.observeRequest({ rpc: 'InfoService/GetHealth', protocol: 'rest', status: 200, durationMs: 4 });
  metrics.observeRequest({ rpc: undefined, protocol: 'rest', status: 404, durationMs: 4_000 });
  const first = (await get('/metrics')).body;
  t.match(first, 'attest_requests_total{rpc="InfoService/GetHealth",surface="rest",status="200"} 1');
  t.match(first, 'attest_requests_total{rpc="none",surface="rest",status="404"} 1');
  t.match(
    first,
    'attest_request_duration_seconds_bucket{le="0.005",rpc="InfoService/GetHealth",surface="rest"} 1',
  );
  t.match(first, 'attest_request_duration_seconds_sum{rpc="none",surface="rest"} 4');
  t.match(first, 'attest_depth 3');
  t.match(first, 'attest_by_stage{stage="seal"} 3');
  t.match(first, 'attest_done_total 4');
  t.match(first, 'process_cpu_user_seconds_total');
  depth = 2;
  const second = (await get('/metrics')).body;
  t.match(second, 'attest_by_stage{stage="settle"} 2');
  t.notMatch(second, 'stage="seal"');
});

t.test('a failure in one environment does not affect another, and is reported', async (t) => {
  const failing = new Set<string>();
  const check = (name: string) => async () => (failing.has(name) ? `${name} is frozen` : undefined);
  const { get } = await startOps(t, [
    { name: 'keys', check: check('keys') },
    { name: 'log live', environment: 'live', check: check('live') },
    { name: 'log test', environment: 'test', check: check('test') },
  ]);
  const statuses = async () =>
    Promise.all(
      ['/readyz', '/readyz/live', '/readyz/test', '/readyz/other'].map(
        async (path) => (await get(path)).status,
      ),
    );
  t.same(await statuses(), [200, 200, 200, 404]);
  failing.add('live');
  t.same(await statuses(), [200, 503, 200, 404]);
  t.match((await get('/readyz')).body, /"status":"ready".*"log live".*live is frozen/);
  failing.add('test');
  t.same(await statuses(), [503, 503, 503, 404]);
  failing.clear();
  failing.add('keys');
  t.same(await statuses(), [503, 503, 503, 404]);
});

t.test('a gauge that cannot be read has no value, and hides no other metric', async (t) => {
  const { get, metrics } = await startOps(t);
  metrics.addGauge({
    name: 'attest_broken',
    help: 'Broken',
    read: async () => Promise.reject(new Error('no')),
  });
  const scrape = await get('/metrics');
  t.equal(scrape.status, 200);
  t.notMatch(scrape.body, /^attest_broken /m);
  t.match(scrape.body, /^process_cpu_seconds_total /m);
});

t.test('a gauge whose source is silent has no value either, and holds up no other metric', async (t) => {
  const { get, metrics } = await startOps(t);
  metrics.addGauge({ name: 'attest_silent', help: 'Of a silent source', read: () => new Promise(() => {}) });
  metrics.addGauge({ name: 'attest_alive', help: 'Of another', read: () => 7 });
  const { status, body } = await get('/metrics');
  t.equal(status, 200);
  t.match(body, /^attest_alive 7$/m);
  t.notMatch(body, /^attest_silent /m);
});

t.test('the ops listener has nothing else', async (t) => {
  const { get } = await startOps(t);
  t.equal((await get('/v1/service/health')).status, 404);
  t.equal((await get('/')).status, 404);
  t.equal((await get('/metrics', 'POST')).status, 405);
});

t.test('two processes of one program keep their metrics apart', async (t) => {
  const [one, two] = [createMetrics(), createMetrics()];
  one.addCounter('attest_done_total', 'Done').add(1);
  t.notMatch((await two.read()).text, 'attest_done_total');
});

/** What a logger writes, parsed. */
async function linesOf(
  write: (log: ReturnType<typeof createLogger>) => void,
): Promise<Record<string, unknown>[]> {
  const chunks: string[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk.toString());
      done();
    },
  });
  write(createLogger({ level: 'info', destination }));
  return chunks
    .join('')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

t.test('a log line is JSON with a level in words and a time', async (t) => {
  const [line, ...more] = await linesOf((log) => {
    log.debug('not this');
    log.info({ rpc: 'GetHealth' }, 'request');
  });
  t.match(line, { level: 'info', rpc: 'GetHealth', msg: 'request', time: /^\d{4}-\d\d-\d\dT[\d:.]+Z$/ });
  t.same(more, []);
});

t.test('credentials are redacted from log lines at any depth', async (t) => {
  const lines = await linesOf((log) => {
    log.info({ authorization: 'Bearer hush', headers: { authorization: 'Bearer hush' } }, 'a');
    log.child({ token: 'hush' }).warn({ webhook: { secret: 'hush' } }, 'b');
  });
  t.notMatch(JSON.stringify(lines), 'hush');
});

t.test('an error is logged with its causes, without the values a driver adds', async (t) => {
  const cause = Object.assign(new Error('duplicate key'), {
    code: '23505',
    detail: 'Key (metadata)=(private)',
  });
  const [line] = await linesOf((log) => log.error({ err: new Error('insert failed', { cause }) }, 'failed'));
  t.match(line, {
    err: {
      type: 'Error',
      message: 'insert failed',
      stack: /ops\.test/,
      cause: { code: '23505', message: 'duplicate key' },
    },
  });
  t.notMatch(JSON.stringify(line), 'private');
  const loop: Error & { cause?: unknown } = new Error('loop');
  loop.cause = loop;
  t.equal((await linesOf((log) => log.error({ err: loop }, 'failed'))).length, 1);
  t.match(await linesOf((log) => log.error({ err: 'thrown text' }, 'failed')), [
    { err: { message: 'thrown text' } },
  ]);
});

t.test('the last line before the process ends is written', async (t) => {
  const logger = new URL('../../../src/server/core/logger.js', import.meta.url).href;
  for (const end of ['process.exit(0)', 'await flushLogger(log); process.kill(process.pid, "SIGKILL")']) {
    const source = `const { createLogger, flushLogger } = await import('${logger}');
      const log = createLogger({ level: 'info' });
      for (let i = 0; i < 500; i++) log.info({ i }, 'line');
      ${end};`;
    const child = spawn(process.execPath, [...process.execArgv, '--input-type=module', '-e', source]);
    const [output] = await Promise.all([text(child.stdout), once(child, 'close')]);
    t.equal(output.trim().split('\n').length, 500, end);
  }
});
