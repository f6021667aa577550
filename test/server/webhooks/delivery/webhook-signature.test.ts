/** What receivers verify deliveries by. That every delivery of every other test is verified is the receiver's doing. */
import t, { type Test } from 'tap';
import { encryptSecret } from '../../../../src/server/keys/encryption.js';
import { rotateWebhookSecret } from '../../../../src/server/webhooks/store/webhooks.js';
import { letPass } from '../../../support/breaking/database-clock.js';
import { makeWitness, openPipeline } from '../../../support/pipeline.js';
import { type Received, startReceiver, verdicts } from '../../../support/webhooks/receiver.js';
import { submitAndDrain, subscribe } from '../../../support/webhooks/webhooks.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const YES = [true, true];
const NO = [false, false];
const witness = await makeWitness(t, 'w');
const open = (test: Test) => openPipeline(test, [witness]);

/** The text with each of its characters as another one, in turn. */
function changesOf(text: string): string[] {
  return Array.from(
    text,
    (character, i) => text.slice(0, i) + (character === '1' ? '2' : '1') + text.slice(i + 1),
  );
}

t.test('after a rotation both secrets sign, for a day', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  const webhook = await subscribe(test, receiver);
  await submitAndDrain(test, webhook.projectId, 1);
  const next = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  receiver.trust(next);
  const stored = encryptSecret(test.pipeline.webhooks.keys, next, webhook.id);
  await rotateWebhookSecret(test.pool, webhook, webhook.id, stored, DAY_MS);
  await submitAndDrain(test, webhook.projectId, 1);
  await letPass(test, DAY_MS);
  await submitAndDrain(test, webhook.projectId, 1);
  t.same(
    receiver.received.map((one) => [verdicts(webhook.secret, one), verdicts(next, one)]),
    [
      [YES, NO],
      [YES, YES],
      [NO, YES],
    ],
  );
});

t.test('each of several secrets within a day signs for its day', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  const webhook = await subscribe(test, receiver);
  const secrets = [webhook.secret];
  for (let fill = 1; fill <= 6; fill++) {
    const next = `whsec_${Buffer.alloc(32, fill).toString('base64')}`;
    const stored = encryptSecret(test.pipeline.webhooks.keys, next, webhook.id);
    await rotateWebhookSecret(test.pool, webhook, webhook.id, stored, DAY_MS);
    await letPass(test, HOUR_MS);
    secrets.push(next);
    receiver.trust(next);
    await submitAndDrain(test, webhook.projectId, 1);
    const signed = receiver.received[fill - 1] as Received;
    t.same(
      secrets.map((secret) => verdicts(secret, signed)[0]),
      secrets.map((_, i) => i > secrets.length - 7),
    );
  }
  await letPass(test, DAY_MS - 2.5 * HOUR_MS);
  await submitAndDrain(test, webhook.projectId, 1);
  const last = receiver.received[6] as Received;
  t.same(
    secrets.map((secret) => verdicts(secret, last)[0]),
    [false, false, false, false, true, true, true],
    'three are of the last day',
  );
});

t.test('a delivery that was changed anywhere is rejected', async (t) => {
  const test = await open(t);
  const receiver = await startReceiver(t);
  const { projectId, secret } = await subscribe(test, receiver);
  await submitAndDrain(test, projectId, 1);
  const [sent] = receiver.received as [Received];
  t.same(verdicts(secret, sent), YES);
  for (const body of changesOf(sent.body)) t.same(verdicts(secret, { ...sent, body }), NO, body);
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
    for (const value of changesOf(String(sent.headers[name]))) {
      t.same(
        verdicts(secret, { ...sent, headers: { ...sent.headers, [name]: value } }),
        NO,
        `${name}: ${value}`,
      );
    }
  }
  for (const value of changesOf(String(sent.headers['service-signature']))) {
    const headers = { ...sent.headers, 'service-signature': value };
    t.equal(verdicts(secret, { ...sent, headers })[0], false, value);
  }
});
