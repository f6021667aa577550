/** What a change makes due is done at once, by a worker that never looks for work in the tables. */
import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '@bufbuild/protobuf';
import t, { type Test } from 'tap';
import { type App, startApp } from '../../support/app.js';
import { newKey, type TestKey } from '../../support/calling/test-keys.js';
import { linesOf } from '../../support/exports/exports.js';
import { consumeJobs } from '../../support/servers/consume-jobs.js';
import { findFreePort } from '../../support/servers/free-port.js';
import { until } from '../../support/until.js';
import { answering, type Receiver, startReceiver } from '../../support/webhooks/receiver.js';
import { setExportScene } from '../exports/rpc/exporting.js';
import { subscribe } from '../webhooks/rpc/subscribing.js';
import { METADATA } from './samples.js';
import { submit, submitInvalid } from './submitting.js';

/** What is left of `METADATA`. */
const REDACTED = { schema: METADATA.schema };
/** What no job wakes never comes. */
const PATIENCE_MS = 20_000;

const { app, store, make } = await setExportScene(t, { isWithoutWorker: true });
await consumeJobs(t, app);

type Subscribed = { owner: TestKey; id: string; receiver: Receiver };

async function subscribed(t: Test): Promise<Subscribed> {
  const owner = await newKey(app);
  const receiver = await startReceiver(t);
  const { id, secret } = await subscribe(app, owner, { url: receiver.url });
  receiver.trust(String(secret));
  return { owner, id, receiver };
}

async function call(
  { key }: TestKey,
  path: string,
  body: JsonObject = {},
  method = 'POST',
): Promise<JsonObject> {
  const { status, json } = await app.rest(`/v1${path}`, { apiKey: key, body, method });
  if (status >= 300) throw new Error(JSON.stringify(json));
  return json;
}

async function redact({ rest }: App, { key: apiKey }: TestKey, id: string): Promise<void> {
  const { status, json } = await rest(`/v1/attestations/${id}`, { apiKey, method: 'DELETE' });
  if (status !== 200) throw new Error(JSON.stringify(json));
}

function received({ receiver }: Subscribed, count: number): Promise<boolean> {
  return until(`${count} events`, () => receiver.received.length === count, PATIENCE_MS);
}

/** Waits until an attempt is recorded. @returns the delivery's id */
function attempted(owner: TestKey, id: string, status: string): Promise<string> {
  return until(
    'the attempt is recorded',
    async () => {
      const { json } = await app.rest(`/v1/webhooks/${id}/deliveries?status=${status}`, {
        apiKey: owner.key,
      });
      return (json.data as { id: string }[])[0]?.id;
    },
    PATIENCE_MS,
  );
}

function shipped(exportId: string, id: string, metadata: JsonObject): Promise<boolean> {
  return until(
    'the object has this metadata',
    async () => {
      const line = (await linesOf(store, exportId)).find(({ submission }) => submission.id === id);
      return line !== undefined && isDeepStrictEqual(line.submission.metadata, metadata);
    },
    PATIENCE_MS,
  );
}

t.test('the test of a subscription wakes a worker', async (t) => {
  const scene = await subscribed(t);
  await call(scene.owner, `/webhooks/${scene.id}/test`);
  await received(scene, 1);
  await attempted(scene.owner, scene.id, 'delivered');
  await call(scene.owner, `/webhooks/${scene.id}/test`);
  t.ok(await received(scene, 2), 'and so does the next one');
});

t.test('a test that comes while another is sent is sent after it', async (t) => {
  const scene = await subscribed(t);
  scene.receiver.behave((response) => void setTimeout(() => response.writeHead(204).end(), 300));
  for (let i = 0; i < 5; i++) await call(scene.owner, `/webhooks/${scene.id}/test`);
  t.ok(await received(scene, 5));
});

t.test('a redelivery wakes a worker, of one delivery and of all that failed', async (t) => {
  const scene = await subscribed(t);
  const { owner, id, receiver } = scene;
  receiver.behave(answering(500));
  await call(owner, `/webhooks/${id}/test`);
  const delivery = await attempted(owner, id, 'failed');
  const since = new Date(Date.now() - 60_000).toISOString();
  await call(owner, `/webhooks/${id}/redeliver_failed`, { since });
  await received(scene, 2);
  receiver.behave(answering(204));
  await attempted(owner, id, 'failed');
  await call(owner, `/webhooks/${id}/deliveries/${delivery}/redeliver`);
  t.ok(await received(scene, 3));
});

t.test('an export that is created is shipped, and one that failed when it is tested', async (t) => {
  const owner = await newKey(app);
  const { id } = await submit(app, owner);
  await until('it is witnessed', async () => {
    const { json } = await app.rest(`/v1/attestations/${id}`, { apiKey: owner.key });
    return json.status === 'witnessed';
  });
  const first = await make(owner, { start: 'beginning' });
  await shipped(first.id, id, METADATA);
  // The object is there before the worker that ships it has recorded that.
  await until('it is postponed', async () => {
    const postponed = await app.pool`
      UPDATE export SET failures = 1, due_at = clock_timestamp() + interval '1 hour'
      WHERE id = ${first.id} AND leased_until IS NULL RETURNING id`;
    return postponed.length > 0;
  });
  const later = await submit(app, owner);
  const second = await make(owner, { start: 'beginning' });
  await shipped(second.id, later.id, METADATA);
  t.notOk((await linesOf(store, first.id)).some(({ submission }) => submission.id === later.id));
  await call(owner, `/exports/${first.id}/test`);
  t.ok(await shipped(first.id, later.id, METADATA));
});

t.test('a correction is shipped, and a redaction', async (t) => {
  const owner = await newKey(app);
  const { id: exportId } = await make(owner, { start: 'beginning' });
  const invalid = await submitInvalid(app, owner);
  await shipped(exportId, String(invalid.id), invalid.metadata as JsonObject);
  await call(owner, `/attestations/${String(invalid.id)}`, { metadata: METADATA }, 'PATCH');
  await shipped(exportId, String(invalid.id), METADATA);
  await redact(app, owner, String(invalid.id));
  t.ok(await shipped(exportId, String(invalid.id), REDACTED));
});

t.test('redactions in quick succession are all shipped', async (t) => {
  const owner = await newKey(app);
  const { id: exportId } = await make(owner, { start: 'beginning' });
  const made = await Promise.all(Array.from({ length: 8 }, () => submit(app, owner)));
  for (const { id } of made) await shipped(exportId, id, METADATA);
  for (const { id } of made) await redact(app, owner, id);
  for (const { id } of made) t.ok(await shipped(exportId, id, REDACTED));
});

t.test('without NATS such calls succeed as they do with it', async (t) => {
  const away = await startApp(t, {
    isWithoutWorker: true,
    natsUrl: `nats://127.0.0.1:${await findFreePort()}`,
  });
  const owner = await newKey(away);
  const { id } = await subscribe(away, owner);
  const { key: apiKey } = owner;
  t.equal((await away.rest(`/v1/webhooks/${id}/test`, { apiKey, body: {} })).status, 201);
  await redact(away, owner, (await submit(away, owner)).id);
});
