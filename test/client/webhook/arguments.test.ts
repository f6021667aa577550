import t from 'tap';
import { verifyWebhook } from '../../../src/client/client.js';
import { BODY, EVENT, NOW, OTHER, SECRET, signed, verify } from './signed-event.js';

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
