/** Signatures: their kinds, secrets that change, mismatches, times, and those of another library. */
import { Webhook as StandardWebhook } from 'standardwebhooks';
import t from 'tap';
import { verifyWebhook, WebhookVerificationError } from '../../../src/client/client.js';
import { AT, BODY, EVENT, NOW, OTHER, only, own, SECRET, signed, standard, verify } from './signed-event.js';

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
