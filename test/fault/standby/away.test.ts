/** The synchronous standby does not answer: what must survive is refused in time, what is only read is served. */
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { newCreation } from '../../support/calling/load.js';
import { runHere } from '../../support/calling/run-cli.js';
import { makeInstallation, makeUnlimitedKey } from '../../support/servers/installation.js';
import { testServers } from '../../support/servers/shared-servers.js';
import { startStandbyPair } from '../../support/standby/standby-pair.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';
import { startFaultTsa } from '../../support/witnesses/fault-tsa.js';

const SAYS_SO = /the database's synchronous standby does not answer/;
/** What a refusal and a read may take on an idle machine. A busy one adds a multiple of what reads take before. */
const REFUSAL_MS = 5_000;
const READ_MS = 1_000;
const BUSY = 5;
const BEFORE_MS = 1_500;
const PAUSE_MS = 50;
/** Of each kind. */
const AT_ONCE = 3;

const pair = await startStandbyPair(t);
const { natsUrl } = await testServers();
const tsa = await startFaultTsa(t);
const installation = await makeInstallation(t, {
  servers: { databaseUrl: pair.url, natsUrl },
  env: { WITNESSES: JSON.stringify([tsa.setting('foreign')]) },
});
const pool = installation.openPool();
const apiKey = await makeUnlimitedKey(pool);
const api = await installation.startApi();
const worker = await installation.startWorker();

type Timed = { status: number; text: string; headers: Headers; ms: number };

async function call(
  method: string,
  path: string,
  body?: object,
  { base = api.baseUrl, headers = {} }: { base?: string; headers?: Record<string, string> } = {},
): Promise<Timed> {
  const startedMs = performance.now();
  const answer = await fetch(base + path, {
    method,
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, text, headers: answer.headers, ms: performance.now() - startedMs };
}

const get = (path: string) => call('GET', path);
const purl = { schema: 'purl', purl: 'pkg:npm/a-test@1.0.0' };
const artifact = () => ({ sha256: newCreation().artifactSha256 });
const create = (more: object = {}) =>
  call('POST', '/v1/attestations', { artifact: artifact(), metadata: purl, ...more });
const spentKey = await makeUnlimitedKey(pool, undefined, { perHour: 1 });
const replayed = { artifact: artifact(), metadata: purl };
const replay = () =>
  call('POST', '/v1/attestations', replayed, {
    headers: { authorization: `Bearer ${spentKey}`, 'idempotency-key': 'once' },
  });
const idOf = ({ status, text }: Timed): string => {
  if (status !== 201) throw new Error(`not created: ${text}`);
  return JSON.parse(text).id;
};

const id = idOf(await create());
idOf(await replay());
idOf(await replay());
const redacted = idOf(await create());
const invalid = idOf(await create({ metadata: { schema: 'purl' }, validation: 'lenient' }));
await call('DELETE', `/v1/attestations/${redacted}`);
await untilWitnessed(pool);

const READS = [
  '/v1/service/health',
  '/v1/service/me',
  '/v1/attestations?limit=5',
  `/v1/attestations/${id}`,
  `/v1/attestations/${id}/bundle`,
];
const WRITES: Record<string, () => Promise<Timed>> = {
  create: () => create(),
  'batch create': () =>
    call('POST', '/v1/attestations:batch', { items: [{ artifact: artifact(), metadata: purl }] }),
  redaction: () => call('DELETE', `/v1/attestations/${id}`),
  'replay beyond the rate limit': () => replay(),
  'redaction of what is redacted': () => call('DELETE', `/v1/attestations/${redacted}`),
  correction: () => call('PATCH', `/v1/attestations/${invalid}`, { metadata: purl }),
};

t.test('reads are served, and what must survive is rejected with the reason', async (t) => {
  const before = await readFor(() => delay(BEFORE_MS));
  const busyMs = BUSY * Math.max(...before.map(({ ms }) => ms));
  pair.takeStandbyAway();
  const reads = await readFor(async () => {
    await assertRefused(t, REFUSAL_MS + busyMs, [SAYS_SO, /the database did not confirm the write/]);
    for (const { opsUrl } of [api, worker])
      await until('it says so', async () => SAYS_SO.test(await readiness(opsUrl)));
    await assertRefused(t, READ_MS + busyMs, [SAYS_SO]);
  });
  t.match(JSON.parse((await get('/v1/service/health')).text), { status: 'degraded', reason: SAYS_SO });
  const doctor = await runHere(['doctor'], { env: installation.env });
  t.match([doctor.code, doctor.stdout], [1, /^failed +commits +none is confirmed within 3 s/m]);
  const said = api.lines.filter(({ level, reason }) => level === 'error' && SAYS_SO.test(String(reason)));
  t.equal(said.length, 1, 'the log says so once');
  const missing = reads.filter(({ status }) => status !== 200);
  t.same(
    missing.map(({ path, status }) => `${path} ${status}`),
    [],
    `${reads.length} reads are served`,
  );
  const slow = reads.filter(({ ms }) => ms > READ_MS + busyMs);
  t.same(
    slow.map(({ path, ms }) => `${path} took ${Math.round(ms)} ms`),
    [],
    `within ${Math.round(READ_MS + busyMs)} ms`,
  );
});

/** At first nobody knows why a commit takes long: a busy machine may say the one before the other. */
async function assertRefused(t: Test, withinMs: number, reasons: readonly RegExp[]): Promise<void> {
  const sent = Object.entries(WRITES).flatMap(([what, write]) =>
    Array.from({ length: AT_ONCE }, async () => [what, await write()] as const),
  );
  for (const [what, { status, text, headers, ms }] of await Promise.all(sent)) {
    // Each item of a batch has an outcome of its own.
    if (what !== 'batch create') t.equal(status, 503, `${what}: ${text}`);
    t.ok(
      reasons.some((reason) => reason.test(text)),
      `${what}: ${text}`,
    );
    if (status === 503) t.match(headers.get('retry-after'), /^[1-9]\d?$/, what);
    t.ok(ms < withinMs, `${what} is refused after ${Math.round(ms)} ms`);
  }
}

async function readiness(opsUrl: string): Promise<string> {
  return (await call('GET', '/readyz', undefined, { base: opsUrl })).text;
}

t.test('when it is back everything goes on', async (t) => {
  await pair.bringStandbyBack();
  await until('creates are taken', async () => (await create()).status === 201);
  // A write that was refused may have been carried out: what is corrected already is not invalid.
  for (const [what, write] of Object.entries(WRITES)) {
    const { status, text } = await write();
    t.ok([200, 201, 409].includes(status), `${what}: ${text}`);
  }
  await untilWitnessed(pool);
  await until('it is ready', async () => {
    const { status, text } = await call('GET', '/readyz', undefined, { base: api.opsUrl });
    return status === 200 && !SAYS_SO.test(text);
  });
});

/** Reads all the time until that is done. */
async function readFor(done: () => Promise<unknown>): Promise<(Timed & { path: string })[]> {
  const reads: (Timed & { path: string })[] = [];
  let isOver = false;
  const reading = READS.map(async (path) => {
    while (!isOver) {
      reads.push({ path, ...(await get(path)) });
      await delay(PAUSE_MS);
    }
  });
  await done().finally(() => {
    isOver = true;
  });
  await Promise.all(reading);
  return reads;
}
