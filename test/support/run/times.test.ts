import { join } from 'node:path';
import t from 'tap';
import { keepTimes, readTimes } from './times.js';

t.test('times are kept from run to run, the longest first, and the slowest twenty are printed', async (t) => {
  const file = join(t.testdir(), '.tap/times.json');
  t.strictSame(readTimes(file), {}, 'none before the first run');
  t.strictSame(keepTimes(file, {}), []);
  keepTimes(file, { 'test/a.test.ts': 7, 'test/b.test.ts': 1 });
  const times = Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`test/${i}.test.ts`, 1000 + i]));
  const printed = keepTimes(file, { ...times, 'test/b.test.ts': 61_250 });
  t.equal(printed.length, 21);
  t.strictSame(printed.slice(1, 3), ['   61.3 test/b.test.ts', '    1.0 test/20.test.ts']);
  const kept = Object.keys(readTimes(file));
  t.equal(kept.length, 23);
  t.strictSame([kept[0], kept.at(-1)], ['test/b.test.ts', 'test/a.test.ts']);
});
