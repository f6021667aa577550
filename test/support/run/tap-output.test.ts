import t from 'tap';
import { findCounts, findTime, isTelling, printCounts } from './tap-output.js';

t.test('the counts of a run are those that its TAP ends with', async (t) => {
  t.strictSame(findCounts('# { total: 249, pass: 249 }'), { passed: 249, failed: 0, skipped: 0 });
  const all = findCounts('# { total: 7, pass: 3, fail: 1, todo: 1, skip: 2 }')!;
  t.strictSame(all, { passed: 3, failed: 1, skipped: 3 });
  t.equal(printCounts(all, 1), '3 passed, 1 failed, 3 skipped');
  t.equal(printCounts({ ...all, failed: 0 }, 1), '3 passed, 1 failed, 3 skipped');
  t.equal(printCounts({ ...all, failed: 0 }, 0), '3 passed, 0 failed, 3 skipped');
  for (const line of ['', '    # { total: 1, pass: 1 }', '# { a: 1 }', 'ok 1 - # { total: 1, pass: 1 }']) {
    t.equal(findCounts(line), undefined, line);
  }
});

t.test('the time of a test file is read where it ends, passed or not', async (t) => {
  t.strictSame(findTime('    ok 2 - test/a/b.test.ts # time=1234.567ms'), ['test/a/b.test.ts', 1235]);
  t.strictSame(findTime('    not ok 1 - test/a.test.ts # time=2ms'), ['test/a.test.ts', 2]);
  for (const line of ['ok 1 - dist/tests/001/a.test.js # time=9ms', '        ok 1 - a # time=9ms', '']) {
    t.equal(findTime(line), undefined, line);
  }
});

t.test('lines of passed tests are left out, all others are kept', async (t) => {
  const left = [
    '',
    '    ',
    '# Subtest: dist/test/a.test.js',
    '    # Subtest: a',
    '    ok 1 - fine # time=1ms',
    '        1..3',
    '    # time=3ms',
  ];
  const kept = [
    'TAP version 14',
    '1..65',
    'ok 3 - dist/test/a.test.js # time=1ms',
    '    ok 2 - test/a.test.ts # time=1ms',
    'not ok 3 - dist/test/a.test.js',
    '        not ok 1 - fine',
    '    ok 1 - later # TODO',
    '    ok 1 - not here # SKIP no git',
    '          at: okay',
    '# { total: 1, pass: 1 }',
  ];
  for (const line of left) t.notOk(isTelling(line), line);
  for (const line of kept) t.ok(isTelling(line), line);
});
