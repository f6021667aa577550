/** Destinations that fail: what the export says, when it is tried again, whom it tells, and what is there in the end. */
import t from 'tap';
import { ExportStatus } from '../../../../gen/attestation/v1/exports_pb.js';
import { DeliveryStatus, EventType } from '../../../../gen/attestation/v1/webhooks_pb.js';
import { destinationMembers } from '../../../../src/server/exports/destinations/destination.js';
import { createDestinations } from '../../../../src/server/exports/destinations/destinations.js';
import { openS3 } from '../../../../src/server/exports/destinations/s3/s3.js';
import { readStoredDestination } from '../../../../src/server/exports/destinations/stored-destination.js';
import { ship } from '../../../../src/server/exports/ship/ship.js';
import { stopExport } from '../../../../src/server/exports/store/exports.js';
import { letPass } from '../../../support/breaking/database-clock.js';
import { objectsOf } from '../../../support/exports/exports.js';
import { type Fault, FULL } from '../../../support/exports/s3/faults.js';
import { contextOf } from '../../../support/exports/s3/fixture.js';
import { assertExported, type SceneExport, setExportScene } from '../../../support/exports/scene.js';
import { drain } from '../../../support/pipeline.js';
import { until } from '../../../support/until.js';
import { startReceiver } from '../../../support/webhooks/receiver.js';
import { deliveriesOf, submitFor, subscribe } from '../../../support/webhooks/webhooks.js';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const scene = await setExportScene(t);
const { test, store } = scene;
const { pool, pipeline } = test;

type Status = { status: number; failures: number; error: string | null; isSince: boolean; waitMs: number };

async function statusOf({ id }: SceneExport): Promise<Status> {
  const [row] = await pool<Status[]>`
    SELECT status, failures, last_error AS error, failing_since IS NOT NULL AS "isSince",
      (extract(epoch FROM due_at - clock_timestamp()) * 1000)::float8 AS "waitMs" FROM export WHERE id = ${id}`;
  if (row === undefined) throw new Error('the export is missing');
  return row;
}

const HEALTHY = { status: ExportStatus.ACTIVE, failures: 0, error: null, isSince: false };

function failWrites(fault: Fault | undefined): void {
  store.fail(({ operation }) => (operation === 'PutObject' ? fault : undefined));
}

/** An export of a new project whose first object the store refuses. */
async function failingExport(fail: () => unknown): Promise<SceneExport> {
  const projectId = await scene.newProject();
  const made = await scene.exportOf(projectId);
  await fail();
  await scene.submit(projectId, 2);
  return made;
}

async function assertRecovery(t: Parameters<typeof assertExported>[0], made: SceneExport): Promise<void> {
  failWrites(undefined);
  await letPass(test, 2 * HOUR_MS);
  await drain(pipeline);
  t.match(await statusOf(made), HEALTHY);
  await assertExported(t, { pool, store }, made);
}

const REFUSALS: Record<string, { fault: Fault; says: RegExp; waitMs?: number }> = {
  'that denies access': {
    fault: { kind: 'refuse', code: 'AccessDenied' },
    says: /^access is denied; allow s3:PutObject \(.*AccessDenied/,
  },
  'that is full': { fault: FULL, says: /^the store is full; make space/ },
  'that throttles with 429': {
    fault: { kind: 'refuse', code: 'TooManyRequests', status: 429, headers: { 'retry-after': '120' } },
    says: /^the store throttles requests/,
    waitMs: 120 * SECOND_MS,
  },
  'that throttles with 503': {
    fault: { kind: 'refuse', code: 'SlowDown', status: 503, headers: { 'retry-after': '300' } },
    says: /^the store throttles requests/,
    waitMs: 300 * SECOND_MS,
  },
  'that asks for a day': {
    fault: { kind: 'refuse', code: 'SlowDown', status: 503, headers: { 'retry-after': '86400' } },
    says: /^the store throttles requests/,
    waitMs: HOUR_MS,
  },
  'that ends connections': { fault: { kind: 'cut', afterBytes: 1 }, says: /127\.0\.0\.1|closed|failed/ },
};

for (const [what, { fault, says, waitMs = 0 }] of Object.entries(REFUSALS)) {
  t.test(`a store ${what}`, async (t) => {
    const made = await failingExport(() => failWrites(fault));
    const failed = await statusOf(made);
    t.match(failed, { status: ExportStatus.ACTIVE, failures: 1, error: says, isSince: true });
    const low = waitMs || 8 * SECOND_MS;
    t.ok(
      failed.waitMs > low - 8 * SECOND_MS && failed.waitMs <= (waitMs || 12 * SECOND_MS),
      `${failed.waitMs} ms`,
    );
    await assertRecovery(t, made);
  });
}

t.test('a store that hangs, with the limit of the destination', async (t) => {
  const { destinations } = pipeline.exports;
  const stallTimeoutMs = 200;
  pipeline.exports.destinations = createDestinations((row) => {
    const destination = destinationMembers(readStoredDestination(scene.keys, row));
    return openS3(contextOf({}, { destination, exportId: row.id, projectId: row.projectId }), {
      stallTimeoutMs,
    });
  });
  t.teardown(async () => {
    await pipeline.exports.destinations.close();
    pipeline.exports.destinations = destinations;
  });
  for (const operation of ['HeadObject', 'PutObject']) {
    const made = await failingExport(() =>
      store.fail((request) => (request.operation === operation ? { kind: 'hang' } : undefined)),
    );
    t.match(await statusOf(made), {
      status: ExportStatus.ACTIVE,
      failures: 1,
      error: /the host timed out/,
      isSince: true,
    });
    store.fail(() => undefined);
    await assertRecovery(t, made);
  }
});

t.test('an unavailable store is retried at growing intervals, and recovers', async (t) => {
  const made = await failingExport(() => store.goAway());
  for (let failures = 1; failures <= 12; failures++) {
    const { error, waitMs, ...status } = await statusOf(made);
    t.match(status, { failures, isSince: true });
    t.match(error, /refuses the connection/);
    const base = Math.min(HOUR_MS, 10 * SECOND_MS * 2 ** (failures - 1));
    t.ok(waitMs > 0.8 * base - 9 * SECOND_MS && waitMs <= 1.2 * base, `${failures}: ${waitMs} ms`);
    await letPass(test, waitMs);
    await drain(pipeline);
  }
  await store.comeBack();
  await assertRecovery(t, made);
});

t.test('an export that fails for a day is failing and sends one event', async (t) => {
  const projectId = await scene.newProject();
  const receivers = [await startReceiver(t), await startReceiver(t)];
  const webhooks = [];
  for (const receiver of receivers)
    webhooks.push(await subscribe(test, receiver, { projectId, events: [EventType.EXPORT_FAILING] }));
  const deaf = await startReceiver(t);
  await subscribe(test, deaf, { projectId });
  const made = await scene.exportOf(projectId);
  failWrites({ kind: 'refuse', code: 'AccessDenied' });
  await scene.submit(projectId, 1);
  receivers[1]?.behave((response) => void response.writeHead(500).end());
  for (let hours = 0; hours < 30; hours++) {
    const { status } = await statusOf(made);
    t.equal(status, hours < 24 ? ExportStatus.ACTIVE : ExportStatus.FAILING, `after ${hours} h`);
    await letPass(test, HOUR_MS);
    await pool`UPDATE export SET due_at = clock_timestamp() WHERE id = ${made.id}`;
    await drain(pipeline);
  }
  receivers[1]?.behave((response) => void response.writeHead(204).end());
  await letPass(test, 12 * HOUR_MS);
  await drain(pipeline);
  const events = receivers.map(({ received }) => received.map(({ event }) => event));
  t.equal(events[0]?.length, 1, 'once');
  t.ok((events[1]?.length ?? 0) > 1, 'and again until it is taken');
  t.equal(new Set(events.flat().map(({ id }) => id)).size, 1, 'under one id');
  t.match(events[0]?.[0], {
    type: 'export.failing',
    data: { export_id: made.id, failing_since: /Z$/, last_error: /^access is denied/ },
  });
  for (const webhook of webhooks)
    t.match(await deliveriesOf(test, webhook), [{ exportId: made.id, status: DeliveryStatus.DELIVERED }]);
  t.notOk(
    deaf.received.some(({ event }) => event.data.export_id),
    'nobody else',
  );
  await assertRecovery(t, made);
  failWrites({ kind: 'refuse', code: 'AccessDenied' });
  await scene.submit(projectId, 1);
  t.match(await statusOf(made), { status: ExportStatus.ACTIVE, failures: 1 }, 'it begins anew');
  await assertRecovery(t, made);
});

t.test('a store that takes a byte a second from one export, while others go on', async (t) => {
  const projectId = await scene.newProject();
  const [slow, other] = [await scene.exportOf(projectId), await scene.exportOf(projectId)];
  store.fail(({ operation, key }) =>
    operation === 'PutObject' && key.includes(slow.id) ? { kind: 'throttle', bytesPerSecond: 1 } : undefined,
  );
  await submitFor(test, projectId, 2);
  await drain(test.another({ exports: { ...pipeline.exports, stopping: AbortSignal.abort() } }));
  store.requests.length = 0;
  const shipping = ship(pipeline, slow.id, projectId);
  await until('it is being taken', () =>
    store.requests.some(({ key, bytes }) => key.includes(slow.id) && bytes > 0),
  );
  for (let i = 0; i < 3; i++) {
    await scene.submit(projectId, 1);
    await assertExported(t, { pool, store }, other);
  }
  t.equal((await objectsOf(store, slow.id)).size, 0);
  t.match(await statusOf(slow), HEALTHY, 'progress is no failure');
  await stopExport(pool, slow.id);
  await shipping;
  store.fail(() => undefined);
  await drain(pipeline);
  t.equal((await objectsOf(store, slow.id)).size, 0, 'what was in progress is aborted');
  const [row] = await pool`SELECT length(secrets) AS length, due_at FROM export WHERE id = ${slow.id}`;
  t.same(row, { length: 0, due_at: null });
});
