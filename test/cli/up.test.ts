import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { openSteps } from '../../src/cli/output/steps.js';
import { PROGRAM, runHere, runProcess } from '../support/calling/run-cli.js';
import '../support/foreign/curl.js';

const UP = ['up', '--port', '0', '--ops-port', '0'];

/** A running `attest up`; `ready` is its first line of output, `hints` are the others. */
type Up = {
  ready: string;
  hints: string[];
  stop(signal: NodeJS.Signals): Promise<{ code: number | null; stderr: string }>;
};

async function startUp(
  t: Test,
  args: readonly string[],
  { cwd = '.', env = {} }: { cwd?: string; env?: Record<string, string> } = {},
): Promise<Up> {
  const child: ChildProcess = spawn(process.execPath, [...PROGRAM, ...args], {
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'close') as Promise<[number | null]>;
  const stderr = text(child.stderr!);
  const stop: Up['stop'] = async (signal) => {
    child.kill(signal);
    const [code] = await ended;
    return { code, stderr: await stderr };
  };
  t.teardown(() => stop('SIGTERM'));
  const hints: string[] = [];
  const lines = createInterface({ input: child.stdout! }).on('line', (line) => hints.push(line));
  const [ready] = await Promise.race([once(lines, 'line'), ended.then(async () => [await stderr])]);
  return { ready: String(ready), hints, stop };
}

t.test('a port in use is reported before any server starts', async (t) => {
  const dir = await dataDirectory(t);
  const other = createServer().listen(0, '127.0.0.1');
  t.teardown(() => other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  for (const ports of [
    ['--port', `${port}`, '--ops-port', '0'],
    ['--port', '0', '--ops-port', `${port}`],
  ]) {
    t.match(await runProcess(['up', ...ports, '--data-dir', dir], { HOME: process.env.HOME ?? '' }), {
      code: 1,
      stdout: '',
      stderr: `error: 127.0.0.1:${port} is taken: choose another port with --port or --ops-port\n`,
    });
  }
  t.notOk((await readdir(dir)).includes('postgres'), 'no Postgres was made');
});

async function dataDirectory(t: Test): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-up-'));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

t.test('one command runs the whole service, and its data survives a restart', async (t) => {
  const dir = await dataDirectory(t);
  const at = (name: string) => join(dir, name);
  const data = ['--data-dir', at('the data')];
  const first = await startUp(t, [...UP, ...data, '--json']);
  const { base_url, verify_url, ops_url, credentials, log_domain } = JSON.parse(first.ready);
  t.match(JSON.parse(await readFile(credentials, 'utf8')), { base_url, verify_url, ops_url });

  await t.test('a file is submitted, witnessed and verified', async (t) => {
    const file = join(t.testdir({ artifact: 'what was tested' }), 'artifact');
    const submitted = await runHere(['submit', file, '--wait', ...data]);
    t.match(submitted, { code: 0, stdout: /^sub_\w{26} {2}witnessed {2}/, stderr: '' });
    const id = submitted.stdout.split(' ')[0]!;
    t.equal((await runHere(['bundle', id, '-o', at('bundle'), ...data])).code, 0);
    const roots = await (await fetch(`${verify_url}/trust_roots.json`)).text();
    const kept = join(t.testdir({ artifact: 'what was tested', roots }), 'roots');
    const verify = ['verify', file, '--bundle', at('bundle')];
    t.match(await runHere([...verify, ...data]), { code: 0, stdout: /\nTrusting http:.* fetched now/ });
    t.match(await runHere([...verify, '--trust-roots', kept]), {
      code: 0,
      stdout: /the operator’s own clock/,
    });
  });

  await t.test('keys are made and revoked with the credentials of the data directory', async (t) => {
    const create = ['keys', 'create', '--environment', 'test', '--name', 'ci', '--json', ...data];
    const made = await runHere(create);
    t.match(made, { code: 0, stderr: '' });
    const { secret, id } = JSON.parse(made.stdout);
    const file = join(t.testdir({ artifact: 'a' }), 'artifact');
    t.match(await runHere(['submit', file, '--api-key', secret, ...data]), { code: 0, stdout: /queued/ });
    const log = JSON.parse((await runHere(['audit-log', '--json', ...data])).stdout);
    const done = (log as { action: string; actor: { id: string } }[]).map(
      ({ action, actor }) => `${action} by ${actor.id}`,
    );
    t.same(done.sort(), [
      'api_key.created by api',
      'api_key.created by up',
      'api_key.created by up',
      'project.created by up',
    ]);
    t.match(await runHere(['keys', 'revoke', id, ...data]), { code: 0, stdout: `${id} is revoked\n` });
    t.match(await runHere(['submit', file, '--api-key', secret, ...data]), {
      code: 1,
      stderr: /auth\.invalid_key/,
    });
  });

  await t.test('a second service over the same data does not start', async (t) => {
    const { code, stdout, stderr } = await runProcess([...UP, ...data]);
    t.match({ code, stdout }, { code: 1, stdout: '' });
    t.match(stderr, /^error: The data directory .* is already in use by process \d+/m);
  });

  t.equal((await first.stop('SIGINT')).code, 0);
  t.match(await runHere(['keys', 'list', ...data]), {
    code: 1,
    stderr: /connection\.failed.*is attest up running\?/,
  });
  t.match(await runHere(['log', 'status', ...data]), {
    code: 1,
    stderr: /the database cannot be reached: .*: is attest up running\?/,
  });
  // As in a data directory of the version before, whose logs had the domain that all had.
  await rm(join(at('the data'), 'log-domain'));
  // The API in processes of its own, as on larger machines.
  const env = { DATA_DIR: at('the data'), API_PROCESSES: '2' };
  const second = await startUp(t, UP, { cwd: dir, env });
  t.match(second.ready, /^ready http:\/\/localhost:\d+$/);

  await t.test('its logs get a domain, which is printed once and kept', async (t) => {
    t.match(log_domain, /^[0-9a-f]{20}\.attest\.internal$/);
    const roots = await fetch(`${second.ready.slice('ready '.length)}/verify/trust_roots.json`);
    const { transparency_logs } = (await roots.json()) as { transparency_logs: { origin: string }[] };
    t.same(transparency_logs.map(({ origin }) => origin).sort(), [
      `live.${log_domain}`,
      `test.${log_domain}`,
    ]);
    t.notMatch(second.hints.join('\n'), /attest\.internal/);
  });

  await t.test('it prints the URLs of API reference, verify page and dashboard', async (t) => {
    for (const [name, title] of [
      ['API reference', /<title>Attestation service</],
      ['verify page', /<title>Verify a proof/],
      ['dashboard', /<title>Dashboard/],
    ] as const) {
      const [, url = ''] = new RegExp(`^ {2}${name} +(\\S+)`, 'm').exec(second.hints.join('\n')) ?? [];
      t.match(await (await fetch(url)).text(), title, name);
    }
  });

  await t.test('its line for curl lists the submissions', async (t) => {
    const env = { PATH: process.env.PATH };
    const shell = spawn('sh', ['-c', second.hints.at(-1) ?? ''], {
      cwd: dir,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [stdout, stderr] = await Promise.all([text(shell.stdout), text(shell.stderr)]);
    t.match(JSON.parse(stdout), { data: [{ status: 'witnessed' }], next_cursor: '' }, stderr);
  });

  await t.test('its three lines to paste submit a file, wait and verify', async (t) => {
    await writeFile(at('package.json'), '{}');
    const pasted = second.hints.slice(-5, -2).join(' && ');
    const env = { PATH: process.env.PATH };
    const shell = spawn('sh', ['-c', pasted], { cwd: dir, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = once(shell, 'close');
    const [stdout, stderr] = await Promise.all([text(shell.stdout), text(shell.stderr)]);
    t.match(stdout, /\nThis artifact was attested under sub_.*\(the operator’s own clock\)\.\n$/, stderr);
    t.match(
      stdout,
      /^ok +statement .*the project prj_\w{26} attested it$/m,
      'the first project is asked for',
    );
    t.strictSame(await ended, [0, null]);
  });

  const id = JSON.parse(await readFile(at('bundle'), 'utf8')).submission.id;
  const again = await runHere(['bundle', id, ...data]);
  t.equal(again.stdout, await readFile(at('bundle'), 'utf8'));
  t.match(await second.stop('SIGTERM'), {
    code: 0,
    stderr:
      /^starting PostgreSQL\n(.*\n)*starting nats-server\n(.*\n)*migrating the database\n(.*\n)*starting worker and API\n(.*\n)*shutting down; repeat the signal to exit at once\n/,
  });
});

t.test('on a terminal the current step has one line, which stays if it took long', async (t) => {
  let [ms, written] = [0, ''];
  let tick = () => {};
  const output = new Writable({
    write: (piece, _, done) => {
      written += piece;
      done();
    },
  });
  const every = (_ms: number, run: () => void) => {
    tick = run;
    return () => {
      tick = () => {};
    };
  };
  const terminal = Object.assign(output, { isTTY: true, columns: 30 });
  const steps = openSteps({ output: terminal, now: () => ms, every });
  steps.begin('first');
  ms = 400;
  steps.begin('second, with a rather long name');
  ms = 2_400;
  tick();
  ms = 2_600;
  steps.end();
  tick();
  steps.end();
  const drawn = ['first …', '', 'second, with a rather long na', 'second, with a rather long na'];
  t.equal(
    written,
    `${drawn.map((line) => `\r\x1b[K${line}`).join('')}\r\x1b[Ksecond, with a rather long name 2.2 s\n`,
  );
});
