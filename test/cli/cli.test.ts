import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import t from 'tap';
import type { Cli } from '../../src/cli/cli.js';
import { runServer } from '../../src/cli/run-server.js';
import { PROGRAM, runHere, runProcess } from '../support/calling/run-cli.js';

const COMMANDS = [
  'up',
  'api',
  'worker',
  'migrate',
  'projects',
  'keys',
  'usage',
  'audit-log',
  'witnesses',
  'log',
  'dsse-keys',
  'secret-keys',
  'submit',
  'lookup',
  'correct',
  'redact',
  'bundle',
  'set',
  'eval',
  'verify',
  'verify-page',
  'audit',
  'webhooks',
  'exports',
];

t.test('each command explains itself, with examples', async (t) => {
  const { code, stdout, stderr } = await runHere(['--help']);
  t.equal(code, 0);
  t.equal(stderr, '');
  for (const command of COMMANDS) {
    t.match(stdout, new RegExp(`^  ${command} `, 'm'), command);
    for (const args of [
      [command, '--help'],
      [command, '-h'],
      ['help', command],
    ]) {
      const help = await runHere(args);
      t.equal(help.code, 0, args.join(' '));
      t.equal(help.stderr, '');
      t.match(help.stdout, new RegExp(`^Usage: attest ${command} `));
      t.match(help.stdout, new RegExp(`Examples?:\\n  \\$ .*attest ${command}`));
    }
  }
});

t.test('the help of a subcommand has examples of its own, and no others', async (t) => {
  for (const group of [
    'projects',
    'keys',
    'witnesses',
    'log',
    'dsse-keys',
    'secret-keys',
    'set',
    'eval',
    'webhooks',
    'exports',
  ]) {
    const { stdout } = await runHere([group, '--help']);
    const listed = stdout.slice(stdout.indexOf('\nCommands:'));
    const names = [...listed.matchAll(/^ {2}([a-z-]+) /gm)].map(([, name]) => name!);
    t.ok(names.length > 2, group);
    for (const name of names.filter((one) => one !== 'help')) {
      const help = await runHere([group, name, '--help']);
      const examples = help.stdout.split('\n').filter((line) => line.startsWith('  $ '));
      t.ok(examples.length > 0, `${group} ${name}`);
      for (const example of examples) t.ok(`${example} `.startsWith(`  $ attest ${group} ${name} `), example);
      t.ok(stdout.includes(examples[0] ?? 'none'), `the group shows the examples of ${name}`);
    }
  }
});

t.test('usage errors end with exit code 2 and one line', async (t) => {
  const table: [args: string[], message: string][] = [
    [['nonsense'], "error: unknown command 'nonsense'"],
    [['--nonsense'], "error: unknown option '--nonsense'"],
    [['verfy'], "error: unknown command 'verfy'\n(Did you mean verify?)"],
    [['verify', '--bundle', 'b'], "error: missing required argument 'file'"],
    [['verify', 'f'], "error: required option '--bundle <file>' not specified"],
    [['verify', 'f', '--bundle', 'b', '--jsn'], "error: unknown option '--jsn'\n(Did you mean --json?)"],
    [['verify', 'f', '--bundle'], "error: option '--bundle <file>' argument missing"],
    [
      ['verify', 'f', 'g', '--bundle', 'b'],
      "error: too many arguments for 'verify'. Expected 1 argument but got 2.",
    ],
    [
      ['verify', 'f', '--bundle', 'b', '--environment', 'prod'],
      "error: option '--environment <environment>' argument 'prod' is invalid. Allowed choices are live, test.",
    ],
    [
      ['verify', 'f', '--bundle', 'b', '--metadata-salt', 'ab'],
      'error: --metadata-salt opens the metadata that --metadata gives',
    ],
    [
      ['verify-page', '--out', 'package.json'],
      'error: package.json exists, perhaps as the only copy: give another name, or --force',
    ],
    [['submit'], 'error: there is nothing to submit: name a file or folder'],
    [['submit', 'f', '--concurrency', '0'], 'error: --concurrency is not a whole number from 1 to 64'],
    [['submit', 'f', '--concurrency', '1e1'], 'error: --concurrency is not a whole number from 1 to 64'],
    [
      ['submit', 'f', '--timeout', 'soon'],
      'error: --timeout is not a duration from 1s to 30d: a whole number and ms, s, m, h or d',
    ],
    [['submit', 'f', '--schema', 'purl'], 'error: --schema needs --metadata'],
    [['submit', 'f', '--metadata', '[]'], 'error: --metadata is not a JSON object'],
    [
      ['submit', 'f', '--metadata', '{"schema":"purl","a":[{"id":9007199254740993}]}'],
      'error: --metadata: /a/0/id is an integer that JSON numbers do not hold exactly: send it as a string',
    ],
    [
      ['submit', 'f', '--schema', 'purl', '--metadata', 'package.json'],
      'error: --metadata is not JSON, or is cut off: @package.json is the content of the file package.json',
    ],
    [
      ['submit', 'f', '--metadata', '{}'],
      'error: --metadata has no schema: add a member "schema", or use --schema',
    ],
    [
      ['submit', 'f', '--schema', 'a', '--metadata', '{"schema":"b"}'],
      'error: --schema differs from the schema in --metadata',
    ],
    [['keys', 'create'], "error: required option '--environment <environment>' not specified"],
    [['keys', 'revoke'], "error: missing required argument 'id'"],
    [
      ['bundle', 'sub_1', '--format', 'pdf'],
      "error: option '--format <format>' argument 'pdf' is invalid. Allowed choices are json, sigstore.json, tlog-proof, ots, cose.",
    ],
    [['migrate'], 'error: One setting is wrong:'],
    [['api', '--port', 'http'], 'error: 6 settings are wrong:'],
    [
      ['up', '--port', '99999'],
      'error: One setting is wrong:\n  --port is "99999", expected a port from 0 to 65535',
    ],
    [['submit', 'f', '--url', 'nowhere'], 'error: One setting is wrong:\n  --url is wrong (it is not a URL)'],
    [
      ['submit', 'f', '--url', 'http://127.0.0.1:9', '--api-key', 'svc_live_x'],
      'error: One setting is wrong:\n  --api-key is wrong (it is cut off or mistyped)',
    ],
    [
      ['projects', 'list', '--url', 'nowhere'],
      'error: One setting is wrong:\n  --url is wrong (it is not a URL)',
    ],
  ];
  for (const [args, message] of table) {
    const { code, stdout, stderr } = await runHere(args, { env: { DATA_DIR: '/nowhere' } });
    t.equal(code, 2, args.join(' '));
    t.equal(stdout, '');
    t.ok(stderr.startsWith(message), stderr);
    t.notMatch(stderr, /\n\s+at /, 'no stack');
  }
  const { code, stderr } = await runHere([]);
  t.equal(code, 2);
  t.match(stderr, /^Usage: attest/);
});

t.test('with --json an error is JSON, and no secret of a setting is in it', async (t) => {
  const env = { DATABASE_URL: 'mysql://u:hunter2@h/d' };
  const { code, stderr } = await runHere(['migrate', '--json'], { env });
  t.equal(code, 2);
  t.match(JSON.parse(stderr), {
    error: { code: 'command.usage', message: /DATABASE_URL is wrong/, details: {} },
  });
  t.notMatch(stderr, 'hunter2');
  for (const [args, message] of [
    [['bundle', '--json'], "missing required argument 'id'"],
    [['verify', 'f', '--json'], "required option '--bundle <file>' not specified"],
  ] as const) {
    const { code, stdout, stderr } = await runHere(args);
    t.match({ code, stdout }, { code: 2, stdout: '' });
    t.match(JSON.parse(stderr), { error: { code: 'command.usage', message, details: {} } });
  }
});

t.test('the process ends as its command did, without a stack', async (t) => {
  const [version, unknown, config, missing] = await Promise.all([
    runProcess(['--version']),
    runProcess(['nonsense']),
    runProcess(['worker'], { PORT: 'x' }),
    runProcess(['verify', join(t.testdir(), 'gone'), '--bundle', join(t.testdir(), 'gone')]),
  ]);
  t.match(version, { code: 0, stdout: /^\d+\.\d+\.\d+\n$/, stderr: '' });
  t.match(unknown, {
    code: 2,
    stdout: '',
    stderr: "error: unknown command 'nonsense'\n(--help shows the usage)\n",
  });
  t.match(config, { code: 2, stdout: '', stderr: /^error: 6 settings are wrong:\n/ });
  t.match(missing, {
    code: 2,
    stdout: '',
    stderr: /^error: .*gone cannot be read: ENOENT: no such file or directory\n$/,
  });
});

t.test('a closed pipe ends the process quietly, but not with exit code 0', async (t) => {
  const child = spawn(process.execPath, [...PROGRAM, 'verify', '--help'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.destroy();
  const errors: Buffer[] = [];
  child.stderr.on('data', (piece: Buffer) => errors.push(piece));
  const [code] = await once(child, 'close');
  t.equal(code, 141);
  t.equal(Buffer.concat(errors).toString(), '');
});

t.test(
  'a failed write of output ends the process with one line, not with the exit code of a finding',
  async (t) => {
    const full = openSync('/dev/full', 'w');
    t.teardown(() => closeSync(full));
    const child = spawn(process.execPath, [...PROGRAM, 'verify', '--help'], {
      stdio: ['ignore', full, 'pipe'],
    });
    const stderr = text(child.stderr!);
    const [code] = await once(child, 'close');
    t.equal(code, 2);
    t.match(await stderr, /^error: the output cannot be written: ENOSPC: [^\n]*\n$/);
  },
);

t.test('an interrupted start completes and prints no address', async (t) => {
  const stderr = new PassThrough();
  const printed: string[] = [];
  const run = (isInterrupted: boolean) =>
    runServer(
      { stderr } as unknown as Cli,
      async ({ stop, onReady }) => {
        if (isInterrupted) process.listeners('SIGINT').at(-1)?.('SIGINT');
        t.equal(stop.aborted, isInterrupted);
        onReady({ opsUrl: `interrupted ${isInterrupted}` });
      },
      ({ opsUrl }) => printed.push(opsUrl),
    );
  await run(false);
  t.equal(stderr.read(), null);
  await run(true);
  t.equal(stderr.read().toString(), 'shutting down; repeat the signal to exit at once\n');
  t.same(printed, ['interrupted false']);
});
