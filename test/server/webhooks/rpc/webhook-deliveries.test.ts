/** What became of deliveries, and sending them again, as their owner sees it on every surface. */
import type { JsonObject } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import t, { type Test } from 'tap';
import { DeliveryStatus, WebhookService } from '../../../../gen/attestation/v1/webhooks_pb.js';
import { startApp } from '../../../support/app.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { until } from '../../../support/until.js';
import { answering, type Receiver, startReceiver } from '../../../support/webhooks/receiver.js';
import { idsOfPages } from '../../rpc/paging.js';
import { NOTHING } from '../../rpc/samples.js';
import { subscribe } from './subscribing.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const { listWebhookDeliveries, getWebhookDelivery, testWebhook } = WebhookService.method;
const { redeliverWebhookDelivery, redeliverFailedWebhookDeliveries } = WebhookService.method;

/** The headers that the service sets. */
const SENT = [
  'content-type',
  'service-signature',
  'user-agent',
  'webhook-id',
  'webhook-signature',
  'webhook-timestamp',
];

type Json = JsonObject & { id: string };
type Call = (typeof surfaces)[number]['call'];

/** A subscription to an endpoint that fails until it is told otherwise. */
async function subscribeFailing(t: Test): Promise<{ key: string; id: string; receiver: Receiver }> {
  const owner = await newKey(app);
  const receiver = await startReceiver(t);
  receiver.behave(answering(500, 'out of order'));
  const { id, secret } = await subscribe(app, owner, { url: receiver.url });
  receiver.trust(String(secret));
  return { key: owner.key, id, receiver };
}

/** Tests of a subscription, each of which is tried once. @returns their ids, newest first */
async function makeTests(call: Call, key: string, id: string, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.unshift(((await call(testWebhook, { id }, key)).response as Json).id);
  await app.drain();
  return ids;
}

function pages(call: Call, key: string, request: { id: string; status?: DeliveryStatus }): Promise<string[]> {
  return idsOfPages((cursor) => call(listWebhookDeliveries, { ...request, limit: 2, cursor }, key));
}

for (const { name, call } of surfaces) {
  t.test(
    `${name}: deliveries are newest first and page without gap or repetition, by status too`,
    async (t) => {
      const { key, id, receiver } = await subscribeFailing(t);
      const failed = await makeTests(call, key, id, 3);
      receiver.behave(answering(200, 'thanks'));
      const delivered = await makeTests(call, key, id, 2);
      t.same(await pages(call, key, { id }), [...delivered, ...failed]);
      t.same(await pages(call, key, { id, status: DeliveryStatus.FAILED }), failed);
      t.same(await pages(call, key, { id, status: DeliveryStatus.PENDING }), []);
      const { response } = await call(getWebhookDelivery, { id, deliveryId: failed[0] ?? '' }, key);
      t.match(response, {
        status: 'DELIVERY_STATUS_FAILED',
        attempts: [{ number: 1, statusCode: 500, error: /500/, answer: 'out of order' }],
      });
    },
  );

  t.test(
    `${name}: failed deliveries since a time, or one delivery, are resent as the same event`,
    async (t) => {
      const { key, id, receiver } = await subscribeFailing(t);
      const [second = '', first = ''] = await makeTests(call, key, id, 2);
      const eventsOf = () => receiver.received.map(({ event }) => event.id);
      const [firstEvent, secondEvent] = eventsOf();
      receiver.behave(answering(204));
      const future = timestampFromDate(new Date(Date.now() + 3_600_000));
      const none = await call(redeliverFailedWebhookDeliveries, { id, since: future }, key);
      t.match(none, { code: 'ok', response: { redelivering: 0 } });
      await app.drain();
      t.equal(receiver.received.length, 2, 'nothing has failed since then');
      const { response } = await call(redeliverWebhookDelivery, { id, deliveryId: second }, key);
      t.match(response, { id: second, status: 'DELIVERY_STATUS_PENDING' });
      await app.drain();
      t.same(eventsOf().slice(2), [secondEvent]);
      const past = timestampFromDate(new Date(Date.now() - 3_600_000));
      const one = await call(redeliverFailedWebhookDeliveries, { id, since: past }, key);
      t.match(one, { code: 'ok', response: { redelivering: 1 } });
      await app.drain();
      t.same(eventsOf().slice(3), [firstEvent], 'what was delivered is not sent again');
      t.same(await pages(call, key, { id, status: DeliveryStatus.DELIVERED }), [second, first]);
    },
  );
}

t.test('a cursor of deliveries is of one subscription and one filter', async (t) => {
  const { key, id } = await subscribeFailing(t);
  await makeTests(surfaces[0]!.call, key, id, 3);
  const { json } = await app.rest(`/v1/webhooks/${id}/deliveries?limit=1`, { apiKey: key });
  const other = await app.rest('/v1/webhooks', {
    apiKey: key,
    body: { url: 'http://127.0.0.1:9/', events: ['attestation.failed'] },
  });
  for (const path of [`${id}/deliveries?status=failed&`, `${other.json.id}/deliveries?`]) {
    const answer = await app.rest(`/v1/webhooks/${path}cursor=${json.next_cursor}`, { apiKey: key });
    t.match(
      { status: answer.status, ...answer.json },
      { status: 400, error: { code: 'cursor.invalid' } },
      path,
    );
  }
  const all = await app.rest(`/v1/webhooks/${id}/deliveries?cursor=${json.next_cursor}`, { apiKey: key });
  t.equal((all.json.data as Json[]).length, 2);
});

t.test('of every attempt in a list the last one alone has its answer; one delivery has all', async (t) => {
  const { key, id, receiver } = await subscribeFailing(t);
  await makeTests(surfaces[0]!.call, key, id, 1);
  receiver.behave(answering(200, 'thanks'));
  const path = `/v1/webhooks/${id}/deliveries`;
  const listed = async () => ((await app.rest(path, { apiKey: key })).json.data as Json[])[0] as Json;
  const delivery = await listed();
  await app.rest(`${path}/${delivery.id}/redeliver`, { apiKey: key, body: {} });
  await app.drain();
  const [before, last] = (await listed()).attempts as JsonObject[];
  t.same([before?.answer, last?.answer], [undefined, 'thanks']);
  const { json: one } = await app.rest(`${path}/${delivery.id}`, { apiKey: key });
  t.match(one, { status: 'delivered', attempts: [{ answer: 'out of order' }, { answer: 'thanks' }] });
});

t.test('a delivery shows the requests as they were sent, but for their signatures', async (t) => {
  const { key, id, receiver } = await subscribeFailing(t);
  const [deliveryId = ''] = await makeTests(surfaces[0]!.call, key, id, 1);
  const headers = receiver.received[0]?.headers ?? {};
  for (const { name, call } of surfaces) {
    const { response } = await call(getWebhookDelivery, { id, deliveryId }, key);
    const [attempt] = response.attempts as {
      url: string;
      requestHeaders: { name: string; value: string }[];
    }[];
    t.equal(attempt?.url, receiver.url, name);
    const shown = new Map(attempt?.requestHeaders.map((header) => [header.name, header.value]));
    t.same([...shown.keys()].sort(), SENT, name);
    for (const [header, value] of shown) {
      const sent = String(headers[header]).replace(/(v1[=,])[\w+/=]+/g, '$1…');
      t.equal(value, sent, `${name}: ${header}`);
    }
    const listed = await call(listWebhookDeliveries, { id }, key);
    t.notMatch(JSON.stringify(listed.response), 'requestHeaders', 'a list is without them');
  }
  await app.pool`UPDATE webhook_attempt SET url = NULL WHERE delivery_id = ${deliveryId}`;
  const { response } = await surfaces[0]!.call(getWebhookDelivery, { id, deliveryId }, key);
  t.notOk('url' in (response.attempts as JsonObject[])[0]!, 'an attempt of an earlier version');
});

t.test('the deliveries of one submission are listed among many others', async (t) => {
  const { key, id, receiver } = await subscribeFailing(t);
  receiver.behave(answering(204));
  const submit = async () => {
    const body = { artifact: { sha256: 'ef'.repeat(32) }, metadata: { schema: 'purl', purl: 'pkg:npm/a@1' } };
    return String((await app.rest('/v1/attestations', { apiKey: key, body })).json.id);
  };
  const first = await submit();
  for (let i = 0; i < 5; i++) await submit();
  await app.drain();
  for (const { name, call } of surfaces) {
    const { response } = await call(listWebhookDeliveries, { id, submissionId: first, limit: 1 }, key);
    t.match(response.data, [{ event: { data: { submission_id: first } } }], name);
    t.notOk(response.nextCursor, name);
    const other = await call(listWebhookDeliveries, { id, submissionId: NOTHING.submissionId }, key);
    t.same(other.response.data ?? [], [], name);
  }
});

t.test('a delivery that was tried without end shows its last fifty attempts', async (t) => {
  const { key, id } = await subscribeFailing(t);
  const [made = ''] = await makeTests(surfaces[0]!.call, key, id, 1);
  await app.pool`
    INSERT INTO webhook_attempt SELECT ${made}, n, now(), 1, 500, 'failed', 'answer ' || n FROM generate_series(2, 5000) n`;
  const path = `/v1/webhooks/${id}/deliveries`;
  const { json: one } = await app.rest(`${path}/${made}`, { apiKey: key });
  const { json: list } = await app.rest(path, { apiKey: key });
  const numbers = Array.from({ length: 50 }, (_, i) => 4951 + i);
  for (const [delivery, answers] of [
    [one, numbers.map((n) => `answer ${n}`)],
    [(list.data as Json[])[0], numbers.map((n) => (n === 5000 ? 'answer 5000' : undefined))],
  ] as const) {
    const attempts = delivery?.attempts as JsonObject[];
    t.same(
      attempts.map(({ number }) => number),
      numbers,
    );
    t.same(
      attempts.map(({ answer }) => answer),
      answers,
    );
  }
});

t.test('an event contains no metadata, redacted or not', async (t) => {
  const { key, id, receiver } = await subscribeFailing(t);
  receiver.behave(answering(204));
  const made: string[] = [];
  for (const sha256 of ['ab'.repeat(32), 'cd'.repeat(32)]) {
    const metadata = { schema: 'purl', purl: 'pkg:npm/not-to-be-told@1.0.0' };
    const { json } = await app.rest('/v1/attestations', {
      apiKey: key,
      body: { artifact: { sha256 }, metadata },
    });
    made.push(String(json.id));
  }
  await app.rest(`/v1/attestations/${made[0]}`, { apiKey: key, method: 'DELETE' });
  await app.drain();
  await until('both events have come', () => receiver.received.length === 2);
  t.same(receiver.received.map(({ event }) => event.data.submission_id).sort(), made);
  for (const { body, event } of receiver.received) {
    t.same(Object.keys(event.data).sort(), ['bundle_url', 'submission_id']);
    t.notMatch(body, /not-to-be-told/);
  }
  const { body } = await app.rest(`/v1/webhooks/${id}/deliveries`, { apiKey: key });
  t.notMatch(body.toString(), /not-to-be-told/);
});

t.test('a test is sent once, signed, also while the subscription is disabled', async (t) => {
  const owner = await newKey(app);
  const receiver = await startReceiver(t);
  const { id, secret = '' } = await subscribe(app, owner, { url: receiver.url });
  receiver.trust(secret);
  for (const status of ['active', 'disabled']) {
    await app.rest(`/v1/webhooks/${id}`, { apiKey: owner.key, method: 'PATCH', body: { status } });
    const { status: code, json } = await app.rest(`/v1/webhooks/${id}/test`, { apiKey: owner.key, body: {} });
    t.equal(code, 201);
    t.match(json, {
      id: /^dlv_/,
      webhook_id: id,
      status: 'pending',
      attempts: [],
      event: { id: /^evt_/, type: 'webhook.test', data: { webhook_id: id } },
    });
    await app.drain();
    const shown = await app.rest(`/v1/webhooks/${id}/deliveries/${json.id}`, { apiKey: owner.key });
    t.match(shown.json, {
      status: 'delivered',
      delivered_at: /T/,
      attempts: [{ number: 1, status_code: 204 }],
    });
    t.same(receiver.received.at(-1)?.event, shown.json.event);
  }
  t.equal(receiver.received.length, 2);
  await receiver.close();
  const { json } = await app.rest(`/v1/webhooks/${id}/test`, { apiKey: owner.key, body: {} });
  await app.drain();
  const failed = await app.rest(`/v1/webhooks/${id}/deliveries/${json.id}`, { apiKey: owner.key });
  t.match(
    failed.json,
    { status: 'failed', attempts: [{ number: 1, error: /./ }] },
    'a test that fails is over',
  );
  t.equal(failed.json.next_attempt_at, undefined);
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder, true);
});
