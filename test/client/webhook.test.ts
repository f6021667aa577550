import { createHmac, randomBytes } from 'node:crypto';
import { getOption } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import t from 'tap';
import { event_data } from '../../gen/attestation/options/v1/options_pb.js';
import {
  EventType,
  EventTypeSchema,
  type VerifyWebhookOptions,
  verifyWebhook,
  type WebhookHeaders,
  WebhookVerificationError,
} from '../../src/client/client.js';
import { enumName } from '../../src/protocol/enum-names.js';
import { findSecretBytes, formatSecret, signatureHeaders } from '../../src/server/webhooks/delivery/sign.js';

const SECRET = formatSecret(randomBytes(32));
const OTHER = formatSecret(randomBytes(24));
const NOW = new Date('2026-03-01T12:00:00Z');
const AT = NOW.getTime() / 1000;
const EVENT = {
  id: 'evt_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T',
  type: 'attestation.witnessed',
  created: '2026-03-01T11:59:58.123Z',
  data: { submission_id: 'sub_1', bundle_url: 'https://api.example.com/v1/attestations/sub_1/bundle' },
};
const BODY = JSON.stringify(EVENT);

type Signing = { secrets?: string[]; timestamp?: number; body?: string };

/** The headers of a delivery as the service sends them. */
function signed({ secrets = [SECRET], timestamp = AT, body = BODY }: Signing = {}): Record<string, string> {
  const keys = secrets.map((secret) => findSecretBytes(secret) as Uint8Array);
  return { 'content-type': 'application/json', ...signatureHeaders(keys, { id: EVENT.id, timestamp, body }) };
}

function only(names: RegExp, headers = signed()): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => names.test(name)));
}

const own = () => only(/^service-/);
const standard = () => only(/^webhook-/);

function verify(headers: WebhookHeaders, body: string | Uint8Array = BODY, options?: VerifyWebhookOptions) {
  return verifyWebhook(body, headers, SECRET, { now: NOW, ...options });
}

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

t.test('either kind of signature suffices, and both must verify if both are present', async (t) => {
  t.ok(verify(own()));
  t.ok(verify(standard()));
  const foreign = signed({ secrets: [OTHER] });
  const code = 'signature.mismatch';
  t.throws(() => verify({ ...signed(), 'service-signature': foreign['service-signature']! }), { code });
  t.throws(() => verify({ ...signed(), 'webhook-signature': foreign['webhook-signature']! }), { code });
  t.throws(() => verify({ ...signed(), 'webhook-id': 'evt_other' }), { code });
});

t.test('during a rotation each side may have either secret, or both', async (t) => {
  for (const secrets of [[SECRET], [SECRET, OTHER], [OTHER, SECRET]]) {
    const headers = signed({ secrets });
    for (const known of [SECRET, [SECRET], [SECRET, OTHER], [OTHER, SECRET]] as const) {
      t.ok(verifyWebhook(BODY, headers, known, { now: NOW }));
    }
  }
  const headers = signed({ secrets: [OTHER] });
  t.throws(() => verifyWebhook(BODY, headers, [SECRET], { now: NOW }), { code: 'signature.mismatch' });
});

t.test('a changed body, secret, id or time is a mismatch', async (t) => {
  const code = 'signature.mismatch';
  for (const kind of [own, standard]) {
    t.throws(() => verify(kind(), `${BODY} `), { code });
    t.throws(() => verify(kind(), ''), { code });
    t.throws(() => verifyWebhook(BODY, kind(), OTHER, { now: NOW }), { code });
  }
  t.throws(() => verify({ 'service-signature': own()['service-signature']!.replace(`${AT}`, `${AT + 1}`) }), {
    code,
  });
  t.throws(() => verify({ ...standard(), 'webhook-timestamp': `${AT + 1}` }), { code });
  t.throws(() => verify({ ...standard(), 'webhook-id': 'evt_x' }), { code });
  const error = t.throws(() => verify(own(), 'x'));
  t.type(error, WebhookVerificationError);
});

t.test('a signature is valid within the tolerance, before and after', async (t) => {
  const cases: [number, number | undefined, string | undefined][] = [
    [-300, undefined, undefined],
    [-301, undefined, 'timestamp.too_old'],
    [300, undefined, undefined],
    [301, undefined, 'timestamp.in_future'],
    [-10, 5, 'timestamp.too_old'],
    [0, 0, undefined],
    [-1, 0, 'timestamp.too_old'],
    [-1_000_000, Number.POSITIVE_INFINITY, undefined],
  ];
  for (const [offset, toleranceSeconds, code] of cases) {
    const headers = signed({ timestamp: AT + offset });
    const options = { ...(toleranceSeconds !== undefined && { toleranceSeconds }) };
    for (const some of [only(/^service-/, headers), only(/^webhook-/, headers)]) {
      const attempt = () => verify(some, BODY, options);
      if (code === undefined) t.ok(attempt(), `${offset} s`);
      else t.throws(attempt, { code }, `${offset} s`);
    }
  }
  const fresh = signed({ timestamp: Math.floor(Date.now() / 1000) });
  t.ok(verifyWebhook(BODY, fresh, SECRET), 'against the clock when no time is given');
});

t.test('missing or malformed headers are rejected with the expected form', async (t) => {
  const mac = 'a'.repeat(64);
  const mac64 = randomBytes(32).toString('base64');
  const good = own()['service-signature']!;
  for (const value of [
    '',
    'garbage',
    `t=${AT}`,
    `v1=${mac}`,
    `t=,v1=${mac}`,
    `t=1e9,v1=${mac}`,
    `t=-1,v1=${mac}`,
    `t=${AT}.5,v1=${mac}`,
    `t=${'9'.repeat(13)},v1=${mac}`,
    `t=${AT},t=${AT},v1=${mac}`,
    `t=${AT},v1=`,
    `t=${AT},v1=${mac.slice(2)}`,
    `t=${AT},v1=${mac}00`,
    `t=${AT},v1=${mac.toUpperCase()}`,
    `t=${AT},v1=${'g'.repeat(64)}`,
    `t=${AT},v0=${mac}`,
    `${good},${good}`,
    `t=${AT},${'v1=,'.repeat(2_000)}`,
  ]) {
    t.throws(
      () => verify({ 'service-signature': value }),
      { code: 'header.malformed' },
      value.slice(0, 80) || 'empty',
    );
  }
  const beside = { 'webhook-id': EVENT.id, 'webhook-timestamp': `${AT}` };
  for (const [name, headers] of Object.entries({
    'no id': { 'webhook-timestamp': `${AT}`, 'webhook-signature': `v1,${mac64}` },
    'empty id': { ...beside, 'webhook-id': '', 'webhook-signature': `v1,${mac64}` },
    'no time': { 'webhook-id': EVENT.id, 'webhook-signature': `v1,${mac64}` },
    'odd time': { ...beside, 'webhook-timestamp': 'now', 'webhook-signature': `v1,${mac64}` },
    empty: { ...beside, 'webhook-signature': '' },
    'another version': { ...beside, 'webhook-signature': `v2,${mac64}` },
    short: { ...beside, 'webhook-signature': `v1,${mac64.slice(4)}` },
    'no padding': { ...beside, 'webhook-signature': `v1,${mac64.replace('=', '')}` },
    'commas between': { ...beside, 'webhook-signature': `v1,${mac64},v1,${mac64}` },
    huge: { ...beside, 'webhook-signature': 'v1, '.repeat(2_000) },
  })) {
    t.throws(() => verify(headers), { code: 'header.malformed' }, name);
  }
  const missing = { code: 'header.missing' };
  for (const headers of [
    {},
    new Headers(),
    [],
    { 'webhook-id': EVENT.id },
    { 'service-signature': undefined },
  ]) {
    t.throws(() => verify(headers), missing);
  }
  const twice = { 'Service-Signature': good, 'service-signature': good };
  t.throws(() => verify(twice), { code: 'header.malformed' }, 'the same header twice');
  t.throws(() => verify({ 'service-signature': [good, good] }), { code: 'header.malformed' });
});

t.test('one matching signature is enough beside any others', async (t) => {
  const good = own()['service-signature']!;
  const [time, match] = good.split(',') as [string, string];
  const foreign = only(/^service-/, signed({ secrets: [OTHER] }))['service-signature']!.split(',')[1]!;
  const junk = ['v1=', 'v1=zz', `v1=${'a'.repeat(62)}`, match.toUpperCase(), 'v1', '=', '', foreign];
  for (const one of junk) {
    t.ok(verify({ 'service-signature': [time, one, match].join(',') }), `${one} before it`);
    t.ok(verify({ 'service-signature': [time, match, one].join(', ') }), `${one} after it`);
  }
  t.ok(verify({ 'service-signature': [...junk, match, time].join(',') }), 'all of them');
  const code = 'signature.mismatch';
  t.throws(() => verify({ 'service-signature': [time, ...junk].join(',') }), { code }, 'none matches');
  const headers = standard();
  const signature = headers['webhook-signature']!;
  for (const one of [
    'v1,',
    'v1,=',
    `v1,${signature.slice(7)}`,
    `${signature}A`,
    `${signature},${signature}`,
    '',
  ]) {
    const verifies = (text: string) => verify({ ...headers, 'webhook-signature': text });
    t.ok(verifies(`${one} ${signature}`), `${one} before it`);
    t.ok(verifies(`${signature} ${one}`), `${one} after it`);
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

t.test('a call that cannot verify anything is a TypeError, which shows no secret', async (t) => {
  const parsed = EVENT as unknown as string;
  t.throws(() => verify(signed(), parsed), { name: 'TypeError', message: /not the parsed JSON/ });
  for (const secret of [
    '',
    'whsec_',
    'shared',
    `whsec_${'A'.repeat(31)}`,
    SECRET.slice(6),
    `${SECRET} `,
    [],
  ]) {
    const error = t.throws(() => verifyWebhook(BODY, signed(), secret, { now: NOW }), TypeError) as Error;
    if (typeof secret === 'string' && secret.length > 8) t.notOk(error.message.includes(secret));
  }
  const absent = (value: unknown) => value as string;
  for (const [secret, message] of [
    [absent(undefined), /^the secret is missing: is the variable that it is read from set\?$/],
    [absent(null), /^the secret is missing/],
    ['', /^the secret is blank: is the variable that it is read from set\?$/],
    [' \n', /^the secret is blank/],
    [[''], /^the secret is blank/],
    [[], /there is no secret to verify with/],
    [[SECRET, ''], /^secret 2 of the list is blank/],
    [[absent(undefined), SECRET], /^secret 1 of the list is missing/],
    [`${SECRET}\n`, /^the secret has white space around it, .*trim it/],
    [` ${SECRET}`, /white space around it/],
    [[SECRET, `${OTHER}\r\n`], /^secret 2 of the list has white space around it/],
    [absent(Buffer.from(SECRET)), /^the secret is not a string$/],
    [SECRET.slice(6), /whsec_ and the base64 of 24 to 64 bytes/],
  ] as [string | string[], RegExp][]) {
    t.throws(() => verifyWebhook(BODY, signed(), secret, { now: NOW }), { name: 'TypeError', message });
  }
  for (const toleranceSeconds of [-1, Number.NaN]) {
    t.throws(() => verify(signed(), BODY, { toleranceSeconds }), TypeError);
  }
});

t.test("the standardwebhooks library and this one verify each other's signatures", async (t) => {
  const foreign = new StandardWebhook(SECRET);
  const timestamp = Math.floor(Date.now() / 1000);
  for (const secrets of [[SECRET], [OTHER, SECRET]]) {
    t.same(foreign.verify(BODY, signed({ secrets, timestamp })), EVENT);
  }
  t.throws(() => foreign.verify(BODY, signed({ secrets: [OTHER], timestamp })));
  const headers = {
    'webhook-id': EVENT.id,
    'webhook-timestamp': `${timestamp}`,
    'webhook-signature': foreign.sign(EVENT.id, new Date(timestamp * 1000), BODY),
  };
  t.equal(verifyWebhook(BODY, headers, SECRET).id, EVENT.id);
});
