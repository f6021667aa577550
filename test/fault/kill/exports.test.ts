/** Workers that are killed, stopped or stalled while they ship: each submission is in one object, as it is now. */
import t from 'tap';
import { readExportProgress } from '../../../src/server/exports/store/export-status.js';
import { statement } from '../../support/breaking/statement-matchers.js';
import { acknowledgement, newCreation, send, startLoad } from '../../support/calling/load.js';
import { linesOf, objectsOf } from '../../support/exports/exports.js';
import type { Fault, SeenRequest } from '../../support/exports/s3/faults.js';
import { BUCKET, OWNER, startStore } from '../../support/exports/s3/fixture.js';
import { assertExported, type SceneExport } from '../../support/exports/scene.js';
import { setScene } from '../../support/fault-fixture.js';
import { someOf } from '../../support/long.js';
import type { ServiceProcess } from '../../support/servers/installation.js';
import { until } from '../../support/until.js';
import { letWitnessesBeAsked, untilGone, untilWitnessed } from '../../support/wait-for-idle.js';

const WORKERS = '^attest (worker|webhooks|exports)$';
const scene = await setScene(t, { env: { ALLOW_INSECURE_DESTINATIONS: 'true' } });
const { installation, pool, servers, apiKey } = scene;
const { proxy } = servers.postgres;
const store = await startStore(t);
const api = await installation.startApi();

async function call(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const answer = await fetch(`${api.baseUrl}/v1/${path}`, {
    method,
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const json = (await answer.json()) as Record<string, unknown>;
  if (!answer.ok) throw new Error(JSON.stringify(json));
  return json;
}

async function makeExport(): Promise<SceneExport> {
  const { accessKeyId: access_key_id, secretAccessKey: secret_access_key } = OWNER;
  const destination = { kind: 's3', bucket: BUCKET, prefix: 'copies', endpoint: store.url };
  const { id } = await call('POST', 'exports', {
    destination: { ...destination, access_key_id, secret_access_key },
  });
  const [row] = await pool<{ projectId: string }[]>`
    SELECT project_id AS "projectId" FROM export WHERE id = ${String(id)}`;
  return { id: String(id), projectId: row?.projectId ?? '', schema: null };
}

/** @returns the submission's id */
async function submit(): Promise<string> {
  const creation = newCreation();
  const answer = await send(api.baseUrl, apiKey, creation);
  if (answer.status !== 201) throw new Error(`not stored: ${JSON.stringify(answer.body)}`);
  return acknowledgement(creation, answer).id;
}

/** Above this many bytes an object is uploaded in parts. */
const LARGE_BYTES = 64 * 1024 * 1024;
const LARGE_METADATA = {
  schema: 'slsa.provenance.v1',
  buildDefinition: { buildType: 'https://example.com/a', externalParameters: { note: 'x'.repeat(60_000) } },
  runDetails: { builder: { id: 'https://example.com/builder' } },
};
const LARGE_SUBMISSIONS = 1_100;

async function submitLarge(): Promise<void> {
  const { artifactSha256: sha256 } = newCreation();
  await call('POST', 'attestations', { artifact: { sha256 }, metadata: LARGE_METADATA });
}

async function untilShipped({ id }: SceneExport): Promise<void> {
  await letWitnessesBeAsked(pool);
  await untilWitnessed(pool);
  await until('everything is shipped', async () => {
    const [progress] = await readExportProgress(pool, [id]);
    const changes = await pool`SELECT FROM export_change`;
    return progress?.lagBatches === 0 && changes.length === 0;
  });
}

/** Makes the writes of an export's objects fail; counts them. */
function failObjects({ id }: SceneExport, operation: string, fault: () => Fault): SeenRequest[] {
  const seen: SeenRequest[] = [];
  store.fail((request) => {
    if (request.operation !== operation || !request.key.includes(id)) return undefined;
    if (!request.key.endsWith('.jsonl')) return undefined;
    seen.push(request);
    return fault();
  });
  return seen;
}

async function killed(worker: ServiceProcess): Promise<void> {
  await worker.kill();
  await untilGone(pool, WORKERS);
  await servers.nats.forget();
  await pool`UPDATE webhook SET leased_until = NULL`;
}

/** Makes it later: the lease of a worker that is dead or stopped has run out. */
async function letLeaseRunOut({ id }: SceneExport): Promise<void> {
  await pool`UPDATE export SET leased_until = clock_timestamp() WHERE id = ${id} AND leased_until IS NOT NULL`;
}

function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** After the first one the lease is waited for. */
const POINTS: [what: string, operation: string, fault: (opened: Promise<void>) => Fault, isLate: boolean][] =
  [
    ['in mid-upload', 'PutObject', () => ({ kind: 'throttle', bytesPerSecond: 20 }), true],
    ['before the upload', 'HeadObject', () => ({ kind: 'hang' }), false],
    ['while the store has the object in hand', 'PutObject', (until) => ({ kind: 'hold', until }), true],
  ];

for (const [what, operation, fault, isLate] of someOf(POINTS, 1)) {
  t.test(`the next worker uploads the object of one killed ${what}`, async (t) => {
    const made = await makeExport();
    const { opened, open } = gate();
    const seen = failObjects(made, operation, () => fault(opened));
    const doomed = await installation.startWorker();
    await Promise.all([submit(), submit(), submit()]);
    await until('it ships', () => seen.length > 0);
    await killed(doomed);
    if (isLate) await letLeaseRunOut(made);
    open();
    store.fail(() => undefined);
    const next = await installation.startWorker();
    await untilShipped(made);
    await next.stop();
    await assertExported(t, { pool, store }, made);
    await call('DELETE', `exports/${made.id}`);
  });
}

t.test('the next worker completes the export of one killed during a multipart upload', async (t) => {
  const made = await makeExport();
  const seen: string[] = [];
  store.fail(({ operation, key }) => {
    if (!key.includes(made.id)) return undefined;
    seen.push(operation);
    const isLater = seen.filter((each) => each === 'UploadPart').length > 2;
    return operation === 'UploadPart' && isLater ? { kind: 'throttle', bytesPerSecond: 1024 } : undefined;
  });
  for (let i = 0; i < LARGE_SUBMISSIONS / 10; i++) await Promise.all(Array.from({ length: 10 }, submitLarge));
  const doomed = await installation.startWorker();
  await until('some parts are there', () => seen.filter((each) => each === 'UploadPart').length > 2, 60_000);
  await killed(doomed);
  await letLeaseRunOut(made);
  t.notOk(seen.includes('CompleteMultipartUpload'));
  t.equal(store.buckets.get(BUCKET)?.uploads.size, 1, 'what was uploaded is left');
  store.fail(() => undefined);
  const next = await installation.startWorker();
  await untilShipped(made);
  await next.stop();
  t.ok([...(await objectsOf(store, made.id)).values()].some(({ length }) => length > LARGE_BYTES));
  await assertExported(t, { pool, store }, made);
  await call('DELETE', `exports/${made.id}`);
});

for (const when of someOf(['before the answer arrives', 'before the request arrives'] as const, 1)) {
  t.test(`a worker killed when it records an object, ${when}`, async (t) => {
    const made = await makeExport();
    const held = proxy.holdNext(when, statement('UPDATE export_shipment SET shipped_revision'));
    const doomed = await installation.startWorker();
    await Promise.all([submit(), submit()]);
    await held;
    await killed(doomed);
    await letLeaseRunOut(made);
    const next = await installation.startWorker();
    await untilShipped(made);
    await next.stop();
    await assertExported(t, { pool, store }, made);
    await call('DELETE', `exports/${made.id}`);
  });
}

t.test('an object that is sent while the database is away is recorded once it is back', async (t) => {
  const made = await makeExport();
  const { opened, open } = gate();
  const seen = failObjects(made, 'PutObject', () => ({ kind: 'hold', until: opened }));
  const worker = await installation.startWorker();
  await Promise.all([submit(), submit()]);
  await until('it ships', () => seen.length > 0);
  await untilWitnessed(pool);
  proxy.setOpen(false);
  open();
  await until('the object is there', async () => (await objectsOf(store, made.id)).size > 0);
  proxy.setOpen(true);
  const isBack = async () => (await fetch(`${api.opsUrl}/readyz`)).ok;
  await until('the database is back', () => pool`SELECT`.then(isBack, () => false));
  await untilShipped(made);
  store.fail(() => undefined);
  await worker.stop();
  await assertExported(t, { pool, store }, made);
  await call('DELETE', `exports/${made.id}`);
});

t.test('an object whose response was lost is stored once', async (t) => {
  const made = await makeExport();
  let isLost = false;
  const seen = failObjects(made, 'PutObject', () => {
    if (isLost) return { kind: 'hold', until: Promise.resolve() };
    isLost = true;
    return { kind: 'cut-answer' };
  });
  const worker = await installation.startWorker();
  await submit();
  await until('it ships', () => seen.length > 0);
  await pool`UPDATE export SET due_at = clock_timestamp() WHERE id = ${made.id}`;
  await untilShipped(made);
  await worker.stop();
  store.fail(() => undefined);
  await assertExported(t, { pool, store }, made);
  await call('DELETE', `exports/${made.id}`);
});

t.test('a writer that wakes up after a redaction by another leaves the redacted object', async (t) => {
  const made = await makeExport();
  const { opened, open } = gate();
  const seen = failObjects(made, 'PutObject', () => ({ kind: 'hold', until: opened }));
  const stalled = await installation.startWorker();
  const [id] = await Promise.all([submit(), submit()]);
  await until('it ships', () => seen.length > 0);
  await untilWitnessed(pool);
  stalled.standStill();
  await letLeaseRunOut(made);
  store.fail(() => undefined);
  await call('DELETE', `attestations/${id}`);
  const other = await installation.startWorker();
  await until('the redacted object is there', async () => (await linesOf(store, made.id)).length > 0);
  await untilShipped(made);
  open();
  stalled.goOn();
  await Promise.all([stalled.stop(), other.stop()]);
  const last = await installation.startWorker();
  await untilShipped(made);
  await last.stop();
  await assertExported(t, { pool, store }, made);
  const line = (await linesOf(store, made.id)).find(({ submission }) => submission.id === id);
  t.match(line?.submission, { metadata_state: 'redacted' });
  await call('DELETE', `exports/${made.id}`);
});

t.test('SIGTERM during an upload ends the worker, and the next one continues at once', async (t) => {
  const made = await makeExport();
  const seen = failObjects(made, 'PutObject', () => ({ kind: 'hang' }));
  const stopping = await installation.startWorker();
  await Promise.all([submit(), submit()]);
  await until('it ships', () => seen.length > 0);
  await stopping.stop();
  const [row] = await pool<{ isDue: boolean; failures: number }[]>`
    SELECT leased_until IS NULL AND due_at <= clock_timestamp() AS "isDue", failures FROM export WHERE id = ${made.id}`;
  t.same(row, { isDue: true, failures: 0 });
  store.fail(() => undefined);
  const next = await installation.startWorker();
  await untilShipped(made);
  await next.stop();
  await assertExported(t, { pool, store }, made);
  await call('DELETE', `exports/${made.id}`);
});

t.test('an upload in flight when the export is stopped is aborted', async (t) => {
  const made = await makeExport();
  const { opened: aborted, open: abort } = gate();
  const seen = failObjects(made, 'PutObject', () => ({
    kind: 'answer',
    with: (response) => void response.once('close', abort),
  }));
  const worker = await installation.startWorker();
  await submit();
  await until('it ships', () => seen.length > 0);
  await call('DELETE', `exports/${made.id}`);
  await aborted;
  store.fail(() => undefined);
  const other = await makeExport();
  await submit();
  await untilShipped(other);
  t.equal((await objectsOf(store, made.id)).size, 0);
  const [row] = await pool`SELECT length(secrets) AS length, due_at FROM export WHERE id = ${made.id}`;
  t.same(row, { length: 0, due_at: null });
  await worker.stop();
  await call('DELETE', `exports/${other.id}`);
});

t.test('workers killed in turn under load leave each submission in one object', async (t) => {
  const made = await makeExport();
  const workers = [await installation.startWorker(), await installation.startWorker()];
  const running = startLoad({ apis: () => [api.baseUrl], apiKey, clients: 3, most: 200 });
  for (let i = 0; i < 4; i++) {
    await running.more(20);
    await workers[i % 2]?.kill();
    workers[i % 2] = await installation.startWorker();
  }
  await running.stop();
  await untilShipped(made);
  for (const worker of workers) await worker.stop();
  await assertExported(t, { pool, store }, made);
});
