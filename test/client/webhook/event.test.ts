/** Events that verify: their types and data, the forms of body and headers, bodies that are no event. */
import { createHmac } from 'node:crypto';
import { getOption } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import { event_data } from '../../../gen/attestation/options/v1/options_pb.js';
import {
  EventType,
  EventTypeSchema,
  verifyWebhook,
  type WebhookHeaders,
} from '../../../src/client/client.js';
import { enumName } from '../../../src/protocol/enum-names.js';
import { findSecretBytes } from '../../../src/server/webhooks/delivery/sign.js';
import { AT, BODY, EVENT, NOW, own, SECRET, signed, standard, verify } from './signed-event.js';

t.test('an event signed by the service verifies and is returned typed', async (t) => {
  const event = verify(signed());
  t.match(event, { id: EVENT.id, type: EventType.ATTESTATION_WITNESSED });
  t.equal(timestampDate(event.created!).toISOString(), EVENT.created);
  if (event.type !== EventType.ATTESTATION_WITNESSED) throw new Error('is another type');
  const { submissionId, bundleUrl } = event.data;
  t.same([submissionId, bundleUrl], [EVENT.data.submission_id, EVENT.data.bundle_url]);
});

t.test('every event type comes with the data that the proto names', async (t) => {
  const data: Record<string, object> = {
    'attestation.v1.WitnessedEventData': { submission_id: 's', bundle_url: 'b' },
    'attestation.v1.PartialEventData': { submission_id: 's', bundle_url: 'b', landed: ['a'], missing: [] },
    'attestation.v1.FailedEventData': { submission_id: 's', reason: 'r', missing: ['a'] },
    'attestation.v1.TestEventData': { webhook_id: 'w' },
    'attestation.v1.ExportFailingEventData': {
      export_id: 'e',
      failing_since: '2026-01-02T03:04:05Z',
      last_error: 'l',
    },
  };
  for (const value of EventTypeSchema.values.slice(1)) {
    const typeName = getOption(value, event_data);
    const body = JSON.stringify({
      ...EVENT,
      type: enumName(EventTypeSchema, value.number),
      data: data[typeName],
    });
    const event = verify(signed({ body }), body);
    t.equal(event.type, value.number);
    t.match(event.data, { $typeName: typeName });
  }
});

t.test('members that a newer service adds are accepted', async (t) => {
  const more = JSON.stringify({ ...EVENT, extra: 1, data: { ...EVENT.data, extra: 2 } });
  t.equal(verify(signed({ body: more }), more).type, EventType.ATTESTATION_WITNESSED);
  const unknown = JSON.stringify({ ...EVENT, type: 'attestation.exploded' });
  t.match(verify(signed({ body: unknown }), unknown), { type: EventType.UNSPECIFIED, data: EVENT.data });
  t.ok(verify({ ...own(), 'service-signature': `${own()['service-signature']},v2=abc,x` }));
  t.ok(verify({ ...standard(), 'webhook-signature': `v1a,abc ${standard()['webhook-signature']}` }));
});

t.test('the body may be text or bytes, the headers those of any framework', async (t) => {
  const bytes = new TextEncoder().encode(BODY);
  t.ok(verify(signed(), bytes));
  t.ok(verify(signed(), Buffer.from(BODY)));
  t.ok(verifyWebhook(bytes.buffer, signed(), SECRET, { now: NOW }));
  const headers = signed();
  const shouted = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
  );
  const inArrays = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
  for (const [form, given] of Object.entries({
    fetch: new Headers(headers),
    node: { ...headers, 'x-absent': undefined, 'set-cookie': ['a', 'b'] },
    shouted,
    arrays: inArrays,
    pairs: Object.entries(headers),
    map: new Map(Object.entries(headers)),
  } satisfies Record<string, WebhookHeaders>)) {
    t.equal(verify(given).id, EVENT.id, form);
  }
});

t.test('a signed body that is no event is rejected', async (t) => {
  for (const body of [
    '',
    'null',
    '[]',
    '"text"',
    '{',
    '{}',
    JSON.stringify({ ...EVENT, type: 7 }),
    JSON.stringify({ ...EVENT, id: 7 }),
    JSON.stringify({ ...EVENT, id: '' }),
    JSON.stringify({ ...EVENT, created: 'yesterday' }),
    JSON.stringify({ ...EVENT, data: [] }),
    JSON.stringify({ ...EVENT, data: undefined }),
    JSON.stringify({ ...EVENT, data: { submission_id: 7 } }),
  ]) {
    t.throws(() => verify(signed({ body }), body), { code: 'body.invalid' }, body);
  }
  const bytes = Buffer.from([0xff, 0xfe]);
  const mac = createHmac('sha256', findSecretBytes(SECRET)!).update(`${AT}.`).update(bytes).digest('hex');
  t.throws(() => verify({ 'service-signature': `t=${AT},v1=${mac}` }, bytes), { code: 'body.invalid' });
});
