import t from 'tap';
import { createDoorkeeper } from '../../../../../src/server/rpc/attestations/bundles/doorkeeper.js';

t.test('a leaf is admitted the second time, and each time after that', async (t) => {
  const admit = createDoorkeeper();
  for (const logIndex of [0, 1, 4_095, 4_096, 2 ** 40 + 1]) {
    t.same([admit(logIndex), admit(logIndex), admit(logIndex)], [false, true, true], String(logIndex));
  }
});

t.test('neighbours are distinct, and those of long ago are forgotten', async (t) => {
  const admit = createDoorkeeper();
  const few = Array.from({ length: 4_096 }, (_, i) => 10_000_000 + i);
  t.notOk(few.some(admit), 'as many as are remembered');
  t.ok(few.every(admit));
  const many = Array.from({ length: 100_000 }, (_, i) => i);
  t.notOk(many.some(admit));
  t.notOk(many.some(admit), 'each has been pushed out by others');
});
