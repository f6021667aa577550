/** The secrets of webhook subscriptions: given, made, stored, rotated, and returned again to a retry. */
import { randomBytes } from 'node:crypto';
import t from 'tap';
import { EventType, WebhookService } from '../../../../gen/attestation/v1/webhooks_pb.js';
import { startApp } from '../../../support/app.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { refusal, SECRET, type Subscription, subscribe, URL } from './subscribing.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const { createWebhook, getWebhook, deleteWebhook, rotateWebhookSecret } = WebhookService.method;
const EVENTS = [EventType.ATTESTATION_WITNESSED, EventType.ATTESTATION_FAILED];

t.test('a caller may bring a secret of 24 to 64 bytes', async (t) => {
  const owner = await newKey(app);
  for (const size of [24, 25, 32, 63, 64]) {
    const secret = `whsec_${randomBytes(size).toString('base64')}`;
    t.equal((await subscribe(app, owner, { secret })).secret, secret, `${size} bytes`);
  }
  const of = (size: number) => randomBytes(size).toString('base64');
  for (const secret of [
    '',
    'whsec_',
    of(32),
    `whsec_${of(23)}`,
    `whsec_${of(65)}`,
    `whsec_${of(32).slice(0, -1)}`,
    `whsec_${'A'.repeat(42)}B=`,
    `whsec_${of(32)}\n`,
    `whsec_${Buffer.alloc(32, 0xff).toString('base64url')}`,
    `WHSEC_${of(32)}`,
  ]) {
    const { status, code, details } = await refusal(app, owner, '/v1/webhooks', {
      url: URL,
      events: ['attestation.witnessed'],
      secret,
    });
    t.match(
      { status, code, details },
      {
        status: 400,
        code: 'request.invalid',
        details: { errors: [{ path: '/secret', message: /^must be/ }] },
      },
      JSON.stringify(secret),
    );
  }
});

t.test('secrets are encrypted where they are stored, each for its own subscription', async (t) => {
  const owner = await newKey(app);
  const { id, secret = '' } = await subscribe(app, owner);
  const [row] = await app.pool<{ text: string; secret: Buffer }[]>`
    SELECT w::text AS text, secret FROM webhook w WHERE id = ${id}`;
  const bytes = Buffer.from(secret.slice('whsec_'.length), 'base64');
  t.notMatch(row?.text, secret);
  t.notOk(row?.secret.includes(bytes));
  t.notOk(row?.secret.includes(secret));
});

t.test('a rotated secret is returned once, with the time until which the old one signs', async (t) => {
  const owner = await newKey(app);
  for (const { name, call } of surfaces) {
    const { id, secret } = await subscribe(app, owner);
    const own = `whsec_${randomBytes(24).toString('base64')}`;
    for (const wanted of [undefined, own]) {
      const { response } = await call(
        rotateWebhookSecret,
        { id, ...(wanted ? { secret: wanted } : {}) },
        owner.key,
      );
      const { secret: made, previousSecretUntil } = response as Subscription & {
        previousSecretUntil: string;
      };
      if (wanted === undefined) t.match(made, SECRET, name);
      else t.equal(made, wanted);
      t.not(made, secret);
      const hours = (Date.parse(previousSecretUntil) - Date.now()) / 3_600_000;
      t.ok(hours > 23.9 && hours <= 24, `${hours} h`);
      app.recorder.secrets.add(String(made));
    }
    t.notOk('secret' in (await call(getWebhook, { id }, owner.key)).response);
  }
});

t.test(
  'a repeated creation returns the same subscription with its secret; a reused key is rejected',
  async (t) => {
    const owner = await newKey(app);
    for (const [i, { name, call }] of surfaces.entries()) {
      const headers = { 'idempotency-key': `create-${i}` };
      const first = await call(createWebhook, { url: URL, events: EVENTS }, owner.key, headers);
      t.equal(first.headers['idempotent-replayed'], undefined);
      for (const other of surfaces) {
        const again = await other.call(createWebhook, { url: URL, events: EVENTS }, owner.key, headers);
        t.same(again.response, first.response, `${name} again by ${other.name}`);
        t.equal(again.headers['idempotent-replayed'], 'true');
        t.equal(again.status, other.name === 'REST' ? 201 : 0);
      }
      const reused = await call(createWebhook, { url: `${URL}2`, events: EVENTS }, owner.key, headers);
      t.equal(reused.code, 'idempotency.key_reused');
      const { id, secret } = first.response as Subscription;
      app.recorder.secrets.add(String(secret));
      await call(deleteWebhook, { id }, owner.key);
      const after = await call(createWebhook, { url: URL, events: EVENTS }, owner.key, headers);
      t.match(after.response, { id, status: 'WEBHOOK_STATUS_DELETED', secret: undefined });
    }
    t.same((await app.rest('/v1/webhooks', { apiKey: owner.key })).json.data, []);
  },
);

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder, true);
});
