import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { type Command, runCommand } from '../../../../../src/server/exports/destinations/git/command.js';
import { until } from '../../../../support/until.js';

/** Runs a shell script. */
function sh(script: string, options: Partial<Command> = {}) {
  const env = { PATH: '/usr/bin:/bin' };
  const signal = new AbortController().signal;
  const bounds = { stallMs: 30_000, totalMs: 60_000 };
  const args = ['-c', script];
  return runCommand({ file: 'sh', args, env, cwd: tmpdir(), signal, what: 'it', ...bounds, ...options });
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

t.test('the result has exit code and output', async (t) => {
  t.strictSame(await sh('echo out; echo err >&2'), { ok: true, stdout: 'out\n', stderr: 'err\n' });
  t.strictSame(await sh('exit 3'), { ok: false, stdout: '', stderr: '' });
  t.strictSame(await sh('kill -9 $$'), { ok: false, stdout: '', stderr: '' });
});

t.test('the environment is the one given', async (t) => {
  const { stdout } = await sh('echo "$HOME$USER"');
  t.equal(stdout, '\n');
});

t.test('of a long output the end is kept', async (t) => {
  const { stdout, stderr } = await sh('seq 100000; seq 100000 >&2');
  for (const output of [stdout, stderr]) {
    t.equal(output.length, 65_536);
    t.match(output, /\n100000\n$/);
  }
});

t.test('a slow program that makes progress goes on', async (t) => {
  const { ok } = await sh('for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.4; done', { stallMs: 2_000 });
  t.ok(ok);
});

t.test('a silent one, and one that takes too long, are killed with all they started', async (t) => {
  for (const [options, message] of [
    [{ stallMs: 500 }, 'it made no progress for 0.5 s'],
    [{ totalMs: 500 }, 'it took longer than 0.5 s'],
  ] as const) {
    const cwd = t.testdir();
    await t.rejects(sh('sleep 1000 & echo $! >pid; wait', { ...options, cwd }), {
      name: 'DestinationError',
      message,
    });
    const pid = Number(await readFile(join(cwd, 'pid'), 'utf8'));
    await until('what it started has ended', () => !isAlive(pid));
  }
});

t.test('input that fails ends the program with its error', async (t) => {
  const input = (async function* () {
    yield Buffer.from('some');
    throw new Error('the spool is gone');
  })();
  await t.rejects(sh('cat; sleep 1000', { input }), { message: 'the spool is gone' });
});

t.test('a program that ends without reading its input has its own result', async (t) => {
  const input = (async function* () {
    for (let i = 0; i < 100; i += 1) yield Buffer.alloc(65_536);
  })();
  t.match(await sh('echo no >&2; exit 1', { input }), { ok: false, stderr: 'no\n' });
});

t.test('a missing program', async (t) => {
  const missing = sh('', { file: 'no-such-program' });
  await t.rejects(missing, { name: 'DestinationError', message: /no program no-such-program/ });
});
