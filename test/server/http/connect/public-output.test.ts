/** What clients are sent without credentials, by address. */
import t from 'tap';
import { createPublicOutput } from '../../../../src/server/http/connect/public-output.js';

const MIB = 1024 * 1024;

t.test('an address is sent a burst, and more as time passes', async (t) => {
  let nowMs = 0;
  const output = createPublicOutput(() => nowMs);
  t.notOk(output.isSpent('192.0.2.1'), 'before anything is sent');
  output.spend('192.0.2.1', 16 * MIB - 1);
  t.notOk(output.isSpent('192.0.2.1'), 'below the burst');
  output.spend('192.0.2.1', MIB + 1);
  t.ok(output.isSpent('192.0.2.1'), 'beyond the burst');
  t.notOk(output.isSpent('192.0.2.2'), 'another address');
  t.notOk(output.isSpent(undefined), 'clients of a proxy');
  nowMs = 999;
  t.ok(output.isSpent('192.0.2.1'), 'a second has not passed');
  nowMs = 1_001;
  t.notOk(output.isSpent('192.0.2.1'), 'a second later');
  nowMs = 1e9;
  t.notOk(output.isSpent('192.0.2.1'));
  output.spend('192.0.2.1', 17 * MIB);
  t.ok(output.isSpent('192.0.2.1'), 'never more than the burst');
});

t.test('clients behind proxies share a larger account', async (t) => {
  const output = createPublicOutput(() => 0);
  output.spend(undefined, 255 * MIB);
  t.notOk(output.isSpent(undefined));
  output.spend(undefined, MIB);
  t.ok(output.isSpent(undefined));
});

t.test('accounts are bounded', async (t) => {
  const output = createPublicOutput(() => 0);
  for (let i = 0; i <= 4_096; i++) output.spend(`192.0.${i}`, 16 * MIB);
  t.notOk(output.isSpent('192.0.0'), 'the first is dropped');
  t.ok(output.isSpent('192.0.1'));
  t.ok(output.isSpent('192.0.4096'));
});
