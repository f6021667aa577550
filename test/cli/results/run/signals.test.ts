/** Signals while `attest run` runs its command. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { PROGRAM } from '../../../support/calling/run-cli.js';
import { SCRIPT } from '../../../support/foreign/script.js';
import { until } from '../../../support/until.js';
import { serveResults } from '../serving.js';

/** Notes signals, writes a report at the end; ends with 3 by SIGTERM, with 0 by SIGHUP, and by SIGINT as the signal has it. */
const COMMAND = `
  const fs = require('node:fs');
  const dir = process.argv[1];
  const note = (signal) => fs.appendFileSync(dir + '/signals', signal + '\\n');
  const end = (code) => {
    fs.writeFileSync(dir + '/r.xml', '<testsuite><testcase name="a"/></testsuite>');
    process.exit(code);
  };
  process.on('SIGTERM', () => { note('SIGTERM'); end(3); });
  process.on('SIGHUP', () => { note('SIGHUP'); end(0); });
  process.once('SIGINT', () => { note('SIGINT'); process.kill(process.pid, 'SIGINT'); });
  setTimeout(() => process.exit(99), 30_000);
  fs.writeFileSync(dir + '/ready', '');`;

t.test('signals reach the command once, its end is waited for, and nothing is attested', async (t) => {
  for (const [signal, code] of [
    ['SIGTERM', 3],
    ['SIGHUP', 129],
    ['SIGINT', 130],
  ] as const) {
    const dir = t.testdir();
    const { created, env } = await serveResults(t);
    const args = ['run', '--junit', join(dir, 'r.xml'), '--', process.execPath, '-e', COMMAND, dir];
    const child = spawn(process.execPath, [...PROGRAM, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    t.teardown(() => child.kill('SIGKILL'));
    const ended = Promise.all([text(child.stderr), once(child, 'close')]);
    await until('the command runs', () => existsSync(join(dir, 'ready')));
    child.kill(signal);
    const [stderr, [exitCode]] = await ended;
    t.equal(exitCode, code, signal);
    t.equal(stderr, 'interrupted: nothing was attested\n');
    t.equal(readFileSync(join(dir, 'signals'), 'utf8'), `${signal}\n`);
    t.same(created, []);
  }
});

t.test('at a terminal the command gets Ctrl-C from there, once', async (t) => {
  const dir = t.testdir();
  const { created, env } = await serveResults(t);
  const args = ['run', '--junit', join(dir, 'r.xml'), '--', process.execPath, '-e', COMMAND, dir];
  const file = join(dir, 'command.sh');
  const quoted = [process.execPath, ...PROGRAM, ...args].map((arg) => `'${arg.replaceAll("'", `'\\''`)}'`);
  writeFileSync(file, `${quoted.join(' ')}; echo "code $?"`);
  const child = spawn(SCRIPT, ['-qec', `/bin/sh ${file}`, '/dev/null'], { env, stdio: 'pipe' });
  t.teardown(() => child.kill('SIGKILL'));
  const ended = Promise.all([text(child.stdout), once(child, 'close')]);
  await until('the command runs', () => existsSync(join(dir, 'ready')));
  child.stdin.write('\x03');
  const [output] = await ended;
  t.equal(readFileSync(join(dir, 'signals'), 'utf8'), 'SIGINT\n');
  t.match(output, /interrupted: nothing was attested/);
  t.same(created, []);
});
