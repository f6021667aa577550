/** pytest and Vitest are installed, and what they write is read. In long runs only. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { runProcess } from '../../../support/calling/run-cli.js';
import { serveResults } from '../serving.js';

const INSTALL_MS = 300_000;

/** Runs an installer; the test fails with what it prints if it does. */
function install(folder: string, program: string, args: readonly string[]): void {
  execFileSync(program, args, { cwd: folder, stdio: 'pipe', timeout: INSTALL_MS });
}

/** What `attest run` attests of a tool's run. */
async function attested(t: Test, folder: string, command: readonly string[]) {
  const { created, env } = await serveResults(t);
  const report = join(folder, 'report.xml');
  const ended = await runProcess(['run', '--junit', report, '--', ...command], { ...env, HOME: folder });
  t.equal(ended.code, 1, `${ended.stdout}${ended.stderr}`);
  t.match(ended.stderr, /sub_1 {2}queued/);
  return created[0]?.metadata;
}

t.test('pytest, as it is today', async (t) => {
  const folder = t.testdir({
    'test_cart.py': `
import pytest
@pytest.mark.parametrize("count", [1, 2])
def test_count(count):
    assert count == 1
@pytest.mark.skip
def test_fetch():
    pass
@pytest.fixture
def broken():
    raise RuntimeError("\\x1b[31m]]>")
def test_open(broken):
    pass
`,
  });
  const venv = join(folder, 'venv');
  install(folder, 'python3', ['-m', 'venv', venv]);
  install(folder, join(venv, 'bin/pip'), ['install', '--quiet', 'pytest']);
  const args = [
    '-p',
    'no:cacheprovider',
    folder,
    '--rootdir',
    folder,
    `--junit-xml=${join(folder, 'report.xml')}`,
  ];
  t.match(await attested(t, folder, [join(venv, 'bin/pytest'), ...args]), {
    result: 'FAILED',
    attest_counts: { tests: 4, passed: 1, warned: 0, failed: 2, skipped: 1 },
    failedTests: ['test_cart > test_count[2]', 'test_cart > test_open'],
    passedTests: ['test_cart > test_count[1]'],
    attest_command: { program: 'pytest', exitCode: 1 },
  });
});

t.test('Vitest, the newest for this version of Node', async (t) => {
  const folder = t.testdir({ 'package.json': '{"type": "module"}' });
  mkdirSync(join(folder, 'test'));
  writeFileSync(
    join(folder, 'test/cart.test.js'),
    `import { describe, expect, it } from 'vitest';
    describe('cart <&>', () => {
      it('adds "up"', () => expect(1 + 2).toBe(3));
      it('counts', () => expect('\\x1b[31m]]>').toBe(1));
      it.skip('fetches', () => {});
    });`,
  );
  install(folder, 'npm', ['install', '--no-audit', '--no-fund', 'vitest@3']);
  const vitest = [process.execPath, join(folder, 'node_modules/vitest/vitest.mjs'), 'run', '--root', folder];
  const reporter = ['--reporter=junit', `--outputFile=${join(folder, 'report.xml')}`];
  t.match(await attested(t, folder, [...vitest, ...reporter]), {
    result: 'FAILED',
    attest_counts: { tests: 3, passed: 1, warned: 0, failed: 1, skipped: 1 },
    failedTests: ['test/cart.test.js > cart <&> > counts'],
    passedTests: ['test/cart.test.js > cart <&> > adds "up"'],
  });
});
