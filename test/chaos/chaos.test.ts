/** The program itself: how it is called, and what a signal leaves behind. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { until } from '../support/until.js';
import { FAULT_KINDS } from './faults/faults.js';

const PROGRAM = fileURLToPath(new URL('./chaos.js', import.meta.url));

function start(args: string[], dir = tmpdir()) {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: dir };
  return spawn(process.execPath, [PROGRAM, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
}

async function run(...args: string[]) {
  const child = start(args);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code, stdout, stderr };
}

t.test('help and the list of kinds are printed', async (t) => {
  t.match(await run('--help'), { code: 0, stdout: /--minutes/ });
  const { code, stdout } = await run('--list');
  t.equal(code, 0);
  t.same(
    stdout.trim().split('\n'),
    FAULT_KINDS.map(({ name }) => name),
  );
});

t.test('wrong arguments end with 2 and name the mistake', async (t) => {
  t.match(await run('--minutes', 'many'), { code: 2, stderr: /--minutes must be a number/ });
  t.match(await run('--unknown'), { code: 2, stderr: /--unknown/ });
  t.match(await run('--scene', 'patroni', '--only', 'Postgres is killed'), {
    code: 2,
    stderr: /in the scene patroni/,
  });
  t.match(await run('--only', 'an earthquake'), {
    code: 2,
    stderr: /no kind of faults "an earthquake" in the scene pair/,
  });
});

/** Command lines of processes that have to do with a directory. */
function processesOf(dir: string): string[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
        return (command + environment).includes(dir) ? [command] : [];
      } catch {
        return [];
      }
    });
}

async function interrupt(t: Test, signal: NodeJS.Signals, code: number) {
  const dir = mkdtempSync(join(tmpdir(), 'attest-chaos-test-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const only =
    'api is stopped and continued,nats-server is stopped and continued,connections to Postgres stall';
  const child = start(['--minutes', '9', '--seed', 'a test', '--only', only], dir);
  let told = '';
  child.stderr.setEncoding('utf8').on('data', (piece: string) => {
    told += piece;
  });
  const ended = once(child, 'close');
  await until('a fault is made', () => told.includes(' s  '));
  child.kill(signal);
  t.same(await ended, [code, null], told);
  if (existsSync('/proc/self/environ')) t.same(processesOf(dir), [], 'no process is left');
  t.same(readdirSync(dir), [], 'nothing is left on disk');
}

t.test('a signal ends everything that was started and removes everything that was made', async (t) => {
  await interrupt(t, 'SIGINT', 130);
});
