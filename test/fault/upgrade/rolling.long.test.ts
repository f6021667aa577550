/** Upgrade and downgrade, process by process and under load: two versions side by side over one database, NATS and register. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { ApiKeyService } from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { ProjectService } from '../../../gen/attestation/admin/v1/projects_pb.js';
import { createAdminCall } from '../../../src/client/admin.js';
import { createClient, Environment, EventType, verifyBundle } from '../../../src/client/client.js';
import { startLoad } from '../../support/calling/load.js';
import { PROGRAM, runProcess } from '../../support/calling/run-cli.js';
import { formerVersion } from '../../support/foreign/former-version.js';
import { assertConsistent } from '../../support/judging/consistent.js';
import { makeInstallation, type ServiceProcess, startService } from '../../support/servers/installation.js';
import { startNatsCluster } from '../../support/servers/nats-cluster.js';
import { testDatabase } from '../../support/servers/shared-servers.js';
import { until } from '../../support/until.js';
import { letWitnessesBeAsked, untilWitnessed } from '../../support/wait-for-idle.js';
import { startReceiver } from '../../support/webhooks/receiver.js';
import { submissionsIn } from '../../support/webhooks/webhooks.js';
import { startFaultTsa } from '../../support/witnesses/fault-tsa.js';

const FORMER = await formerVersion();
/** Submissions acknowledged, and bundles fetched, between two steps. */
const CREATED = 40;
const FETCHED = 2;
/** What a client tries again, by our own library's rules: no answer, or an answer that says so. */
const RETRIED = new Set<number | 'broken'>(['broken', 201, 429, 503]);

const cluster = await startNatsCluster(t);
const tsa = await startFaultTsa(t);
const receiver = await startReceiver(t);
const publicLog = await mkdtemp(join(tmpdir(), 'attest-public-log-'));
t.teardown(() => rm(publicLog, { recursive: true, force: true }));
const { env, register, openPool } = await makeInstallation(t, {
  servers: { databaseUrl: await testDatabase(t, { empty: true }), natsUrl: cluster.url },
  env: {
    NATS_REPLICAS: '3',
    WITNESSES: JSON.stringify([tsa.setting('foreign')]),
    ALLOW_INSECURE_DESTINATIONS: 'true',
    LOG_STORAGE: publicLog,
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
const project = await admin(ProjectService.method.createProject, { name: 'a test' });
const { secret: apiKey = '' } = await admin(ApiKeyService.method.createApiKey, {
  projectId: project.id,
  environment: Environment.LIVE,
  name: 'a test',
});
const client = createClient({ baseUrl, apiKey, fetch: balanced });
const { secret } = await client.webhooks.create({
  url: receiver.url,
  events: [EventType.ATTESTATION_WITNESSED],
});
receiver.trust(secret ?? '');
const load = startLoad({ apis: () => apis, apiKey, clients: 3, most: 1_000_000 });
const reading = { stopped: false, fetched: 0, created: [] as string[], wrong: [] as string[] };
const readers = Promise.all([readOn(), readOn()]);

/** Creates, waits, reads, lists and verifies, one after the other, by the client library. What it throws is no retry's matter. */
async function readOn(): Promise<void> {
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
      const trustRoots = await (await fetch(`${apis[turn++ % apis.length]}/verify/trust_roots.json`)).json();
      const { verdict } = await verifyBundle(bundle, {
        artifactSha256: artifact.sha256,
        trustRoots,
        now: new Date(),
      });
      if (verdict !== 'verified') reading.wrong.push(`the bundle of ${id} is ${verdict}`);
      reading.fetched++;
    } catch (error) {
      reading.wrong.push((error as Error).stack ?? String(error));
    }
  }
}

/** Lets clients go on: each step has submissions, bundles and events of its own. */
async function goOn(): Promise<void> {
  const { fetched } = reading;
  const events = receiver.received.length;
  await load.more(CREATED);
  await until('bundles are fetched', () => reading.fetched >= fetched + FETCHED);
  await until('events come', () => receiver.received.length > events);
}

/** Replaces each process by one of this version, a new one before the old one ends. */
async function replaceAll(program: readonly string[]): Promise<void> {
  for (const each of places) {
    const former = each.process;
    each.process = await start(each.role, program);
    apis = baseUrls();
    await former.stop();
    await goOn();
  }
}

async function assertUnharmed(t: Test): Promise<void> {
  t.same(reading.wrong, []);
  t.same(
    [...load.statuses.keys()].filter((status) => !RETRIED.has(status)),
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
  await Promise.all([load.stop(), readers]);
  await letWitnessesBeAsked(pool);
  await untilWitnessed(pool);
  await assertUnharmed(t);
  const acknowledged = [...load.acknowledged.map(({ id }) => id), ...reading.created];
  await until('every event has come', () => {
    const told = new Set(submissionsIn(receiver.received));
    return acknowledged.every((id) => told.has(id));
  });
  await assertConsistent(t, { pool, acknowledged: load.acknowledged, register });
  const stored = await pool<{ id: string }[]>`SELECT id FROM submission WHERE id = ANY(${acknowledged})`;
  t.equal(stored.length, acknowledged.length);
  const audit = await runProcess(['audit', `${apis[0]}/verify`]);
  t.equal(audit.code, 0, audit.stderr + audit.stdout);
});
