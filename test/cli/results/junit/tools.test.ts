/** What tools write, read to test results. The samples' README has how they were made. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { resultOf, SAMPLES } from './reading.js';

const sample = (name: string) => join(SAMPLES, name);

/** Outcome, counts (tests, passed, warned, failed, skipped), and the names of failed, warned and passed tests. */
const EXPECTED: Record<string, [string, number[], string[], string[], string[]]> = {
  'pytest.xml': [
    'FAILED',
    [8, 2, 0, 4, 2],
    [
      'test_cart.TestCart > test_count[2]',
      'test_cart > test_close',
      'test_cart > test_open',
      'test_cart > test_names_with_ümlaut_and_escape',
    ],
    [],
    ['test_cart.TestCart > test_total', 'test_cart.TestCart > test_count[1]'],
  ],
  'jest-junit.xml': [
    'FAILED',
    [5, 3, 0, 1, 1],
    ['cart counts'],
    [],
    ['cart adds up', 'cart checks out', 'cart inner nested'],
  ],
  // `same title` is two tests with one name.
  'vitest.xml': [
    'FAILED',
    [7, 4, 0, 1, 2],
    ['t/cart.test.js > cart > counts'],
    [],
    ['t/cart.test.js > cart > adds up', 't/cart.test.js > cart > is flaky', 't/cart.test.js > same title'],
  ],
  // Two projects, with includeRetries.
  'playwright.xml': [
    'FAILED',
    [10, 4, 2, 2, 2],
    ['cart.spec.js > cart › counts'],
    ['cart.spec.js > cart › is flaky'],
    ['cart.spec.js > cart › adds up', 'cart.spec.js > cart › expected to fail'],
  ],
  'go-junit-report.xml': [
    'FAILED',
    [7, 2, 0, 4, 1],
    [
      'example.com/shop/broken > [build failed]',
      'example.com/shop/cart > TestCount',
      'example.com/shop/cart > TestCount/two',
      'example.com/shop/cart > TestFlaky',
    ],
    [],
    ['example.com/shop/cart > TestTotal', 'example.com/shop/cart > TestCount/one'],
  ],
  // Reruns are cases of their own: TestFlaky failed, then passed.
  'gotestsum.xml': [
    'FAILED',
    [11, 3, 0, 7, 1],
    [
      'example.com/shop/cart > TestCount/two',
      'example.com/shop/cart > TestCount',
      'example.com/shop/cart > TestFlaky',
    ],
    [],
    ['example.com/shop/cart > TestTotal', 'example.com/shop/cart > TestCount/one'],
  ],
  'gotestsum-build-failed.xml': ['FAILED', [1, 0, 0, 1, 0], ['TestMain'], [], []],
  // With rerunFailingTestsCount: rerunError, rerunFailure and flakyFailure.
  'surefire.xml': [
    'FAILED',
    [5, 1, 1, 2, 1],
    ['com.acme.CartTest > broken', 'com.acme.CartTest > count'],
    ['com.acme.CartTest > flaky'],
    ['com.acme.CartTest > total'],
  ],
  'bazel.xml': ['FAILED', [1, 0, 0, 1, 0], ['cart/cart_test'], [], []],
  'googletest.xml': [
    'FAILED',
    [4, 1, 0, 2, 1],
    ['MathTest > Subtraction', 'LogicTest > NonContradiction'],
    [],
    ['MathTest > Addition'],
  ],
};

t.test('what each tool writes becomes a test result', async (t) => {
  for (const [name, [result, counts, failedTests, warnedTests, passedTests]] of Object.entries(EXPECTED)) {
    const [tests, passed, warned, failed, skipped] = counts;
    t.same(
      await resultOf([sample(name)]),
      {
        schema: 'intoto.test_result.v0.1',
        result,
        configuration: [],
        attest_counts: { tests, passed, warned, failed, skipped },
        failedTests,
        warnedTests,
        passedTests,
      },
      name,
    );
  }
});

t.test('several reports are one result', async (t) => {
  const found = await resultOf([sample('pytest.xml'), sample('vitest.xml')]);
  t.match(found, { result: 'FAILED', attest_counts: { tests: 15, passed: 6, failed: 5, skipped: 4 } });
  t.equal((found.failedTests as string[]).length, 5);
});

t.test('the README of the samples has each of them', async (t) => {
  const page = readFileSync(join(SAMPLES, 'README.md'), 'utf8');
  for (const name of Object.keys(EXPECTED)) t.match(page, `\`${name}\``);
});
