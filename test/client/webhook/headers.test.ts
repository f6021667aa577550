import { randomBytes } from 'node:crypto';
import t from 'tap';
import { AT, EVENT, own, verify } from './signed-event.js';

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
