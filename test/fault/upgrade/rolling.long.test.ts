/**
 * Upgrade and downgrade, process by process and under load, of two versions side by side over all that machines share: three
 * nodes of Patroni, which hand over meanwhile, three of JetStream, a bucket with the register and the public log, two logs.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { ApiKeyService } from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { ProjectService } from '../../../gen/attestation/admin/v1/projects_pb.js';
import { createAdminCall } from '../../../src/client/admin.js';
import { createClient, Environment, EventType, verifyBundle } from '../../../src/client/client.js';
import { listLogs, logName } from '../../../src/server/log/store/logs.js';
import { examineLog } from '../../server/public/storage/stored-log.js';
import { startLoad } from '../../support/calling/load.js';
import { PROGRAM, runProcess } from '../../support/calling/run-cli.js';
import { bucketAt, bucketSetting, startStore, storedBytes } from '../../support/exports/s3/fixture.js';
import { formerVersion } from '../../support/foreign/former-version.js';
import { assertConsistent } from '../../support/judging/consistent.js';
import { makeInstallation, type ServiceProcess, startService } from '../../support/servers/installation.js';
import { startNatsCluster } from '../../support/servers/nats-cluster.js';
import { startPatroniCluster } from '../../support/standby/patroni-cluster.js';
import { PASSWORD } from '../../support/standby/patroni-node.js';
import { startSyncProxy } from '../../support/standby/sync-proxy.js';
import { until } from '../../support/until.js';
import { letWitnessesBeAsked, untilWitnessed } from '../../support/wait-for-idle.js';
import { startReceiver } from '../../support/webhooks/receiver.js';
import { submissionsIn } from '../../support/webhooks/webhooks.js';
import { startFaultTsa } from '../../support/witnesses/fault-tsa.js';

const FORMER = await formerVersion();
/** Submissions acknowledged, and bundles fetched, between two steps. */
const CREATED = 40;
const FETCHED = 2;
/** Success, and what a client tries again by our own library's rules: no answer, or an answer that says so. */
const EXPECTED = new Set<number | 'broken'>(['broken', 200, 201, 429, 503]);

const postgres = await startPatroniCluster(t);
const standby = await startSyncProxy(t, postgres.nodes);
const nats = await startNatsCluster(t);
const store = await startStore(t);
const tsa = await startFaultTsa(t);
const receiver = await startReceiver(t);
const { env, openPool } = await makeInstallation(t, {
  servers: { databaseUrl: postgres.url, natsUrl: nats.url },
  env: {
    DATABASE_READ_URL: `postgres://postgres:${PASSWORD}@${standby}/postgres`,
    NATS_REPLICAS: '3',
    WITNESSES: JSON.stringify([tsa.setting('foreign')]),
    ALLOW_INSECURE_DESTINATIONS: 'true',
    CHECKPOINT_REGISTER: bucketSetting(store.url, 'register'),
    LOG_STORAGE: bucketSetting(store.url, 'public'),
    LOGS: 'live:2',
  },
});
const pool = openPool();
await migrate(FORMER);

type Place = { role: 'api' | 'worker'; process: ServiceProcess };
const start = (role: Place['role'], program: readonly string[]) =>
  startService(t, role, env, () => {}, program);
const place = async (role: Place['role']): Promise<Place> => ({ role, process: await start(role, FORMER) });
const places = [await place('api'), await place('worker'), await place('api'), await place('worker')];
/** Of those that a load balancer sends requests to. */
let apis = baseUrls();

function baseUrls(): string[] {
  return places.flatMap(({ role, process }) => (role === 'api' ? [process.baseUrl] : []));
}

async function migrate(program: readonly string[]): Promise<void> {
  await promisify(execFile)(process.execPath, [...program, 'migrate'], {
    env: { PATH: process.env.PATH, ...env },
  });
}

let turn = 0;
/** As a load balancer: each request goes to the next API process. */
const balanced: typeof fetch = (input, init) => {
  const { pathname, search } = new URL(String(input));
  return fetch(`${apis[turn++ % apis.length]}${pathname}${search}`, init);
};

const baseUrl = apis[0]!;
const admin = createAdminCall({ baseUrl, adminToken: env.ADMIN_TOKEN! });
/** A project of each log, its clients and its load. */
const projects = [await openProject('one'), await openProject('other')];
const reading = { stopped: false, fetched: 0, created: [] as string[], wrong: [] as string[] };
const readers = Promise.all(projects.map(readOn));

async function openProject(name: string) {
  const project = await admin(ProjectService.method.createProject, { name });
  const { secret: apiKey = '' } = await admin(ApiKeyService.method.createApiKey, {
    projectId: project.id,
    environment: Environment.LIVE,
    name,
  });
  const client = createClient({ baseUrl, apiKey, fetch: balanced });
  const { secret } = await client.webhooks.create({
    url: receiver.url,
    events: [EventType.ATTESTATION_WITNESSED],
  });
  receiver.trust(secret ?? '');
  return { client, load: startLoad({ apis: () => apis, apiKey, clients: 2, most: 1_000_000 }) };
}

/** Creates, waits, reads, lists and verifies, one after the other, by the client library. What it throws is no retry's matter. */
async function readOn({ client }: Pick<(typeof projects)[number], 'client'>): Promise<void> {
  while (!reading.stopped) {
    try {
      const artifact = { sha256: randomBytes(32).toString('hex') };
      const metadata = { schema: 'purl', purl: 'pkg:npm/a-test@1.0.0' };
      const { id } = await client.attestations.create({ artifact, metadata });
      reading.created.push(id);
      await client.attestations.waitUntilWitnessed(id);
      const listed = await client.attestations.list({ artifactSha256: artifact.sha256 });
      if (listed.data.length !== 1 || listed.data[0]?.id !== id) reading.wrong.push(`${id} is not listed`);
      const bundle = await client.attestations.getBundle(id);
      const trustRoots = await fetchTrustRoots();
      const { verdict, summary } = await verifyBundle(bundle, {
        artifactSha256: artifact.sha256,
        trustRoots,
        now: new Date(),
      });
      if (verdict !== 'verified') reading.wrong.push(`${id}: ${summary}`);
      reading.fetched++;
    } catch (error) {
      reading.wrong.push((error as Error).stack ?? String(error));
    }
  }
}

/** As a client that tries a read again that was answered with 503. */
function fetchTrustRoots(): Promise<unknown> {
  return until('there are trust roots', async () => {
    const answer = await balanced('http://any/verify/trust_roots.json');
    if (!EXPECTED.has(answer.status)) reading.wrong.push(`trust roots: ${answer.status}`);
    return answer.ok && answer.json();
  });
}

/** Lets clients go on: each step has submissions, bundles and events of its own. */
async function goOn(): Promise<void> {
  const { fetched } = reading;
  const events = receiver.received.length;
  await Promise.all(projects.map(({ load }) => load.more(CREATED)));
  await until('bundles are fetched', () => reading.fetched >= fetched + FETCHED);
  await until('events come', () => receiver.received.length > events);
}

/** Replaces each process by one of this version, a new one before the old one ends; halfway Postgres has another leader. */
async function replaceAll(program: readonly string[]): Promise<void> {
  for (const [i, each] of places.entries()) {
    const former = each.process;
    each.process = await start(each.role, program);
    apis = baseUrls();
    await former.stop();
    await goOn();
    if (i === 1) {
      const { leader, synchronous } = await postgres.untilHealthy();
      await postgres.switchOver(leader, synchronous);
      await goOn();
    }
  }
}

async function assertUnharmed(t: Test): Promise<void> {
  t.same(reading.wrong, []);
  const statuses = projects.flatMap(({ load }) => [...load.statuses.keys()]);
  t.same(
    statuses.filter((status) => !EXPECTED.has(status)),
    [],
  );
}

t.test('the former version works, also once the database is migrated under it', async (t) => {
  await goOn();
  await migrate(PROGRAM);
  await goOn();
  await assertUnharmed(t);
});

t.test('each process is replaced by one of this version', async (t) => {
  await replaceAll(PROGRAM);
  await assertUnharmed(t);
});

t.test('each process is replaced by one of the former version, over the migrated database', async (t) => {
  await replaceAll(FORMER);
  await assertUnharmed(t);
});

t.test('what was acknowledged is in the log and proven, and its event came', async (t) => {
  reading.stopped = true;
  await Promise.all([...projects.map(({ load }) => load.stop()), readers]);
  await letWitnessesBeAsked(pool);
  await untilWitnessed(pool);
  await assertUnharmed(t);
  const loaded = projects.flatMap(({ load }) => load.acknowledged);
  const acknowledged = [...loaded.map(({ id }) => id), ...reading.created];
  await until('every event has come', () => {
    const told = new Set(submissionsIn(receiver.received));
    return acknowledged.every((id) => told.has(id));
  });
  const register = { storage: bucketAt(store.url, 'register') };
  await assertConsistent(t, { pool, acknowledged: loaded, register });
  const stored = await pool<{ id: string }[]>`SELECT id FROM submission WHERE id = ANY(${acknowledged})`;
  t.equal(stored.length, acknowledged.length);
  for (const log of (await listLogs(pool)).filter(({ environment }) => environment === Environment.LIVE)) {
    const [row] = await pool<{ size: number }[]>`
      SELECT max(log_index) + 1 AS size FROM submission WHERE log_id = ${log.id}`;
    const read = (path: string) => storedBytes(store, `public/log/${logName(log)}/${path}`);
    await until(`all of ${log.origin} is in the bucket`, () => examineLog(read).size === row?.size);
    t.equal(examineLog(read).problem, undefined);
  }
  const audit = await runProcess(['audit', `${apis[0]}/verify`]);
  t.equal(audit.code, 0, audit.stderr + audit.stdout);
});
