/** `attest login`, `logout` and `profiles`, and which address and key a command uses. */
import { spawn } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import t from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { startApp } from '../../support/app.js';
import { PROGRAM, runHere } from '../../support/calling/run-cli.js';
import { newKey } from '../../support/calling/test-keys.js';
import { SCRIPT } from '../../support/foreign/script.js';
import { until } from '../../support/until.js';
import { makeHome } from './homes.js';

const app = await startApp(t);
const owner = await newKey(app, { expiresAt: new Date('2100-01-02T03:04:05Z') });
const tester = await newKey(app, { projectId: owner.projectId, environment: Environment.TEST });

const login = (more: readonly string[] = []) => ['login', '--url', app.baseUrl, '--api-key-stdin', ...more];

t.test('a login keeps address and key, for its owner alone, and shows whose key it is', async (t) => {
  const home = makeHome(t);
  const made = await home.attest(login(), { piped: `${owner.key}\n` });
  t.equal(made.code, 0, made.stderr);
  t.match(
    made.stdout,
    new RegExp(`^service +${app.baseUrl}\nproject +a test \\(${owner.projectId}\\)$`, 'm'),
  );
  t.match(made.stdout, /^environment +live$/m);
  t.match(made.stdout, new RegExp(`^key +svc_live_…${owner.key.slice(-4)} \\(${owner.id}\\)$`, 'm'));
  t.match(made.stdout, /^scopes +attestations:read .*service:read/m);
  t.match(made.stdout, /^expires +2100-01-02T03:04:05.000Z$/m);
  t.match(made.stdout, `default in ${home.file}`);
  t.same(home.read(), { default: { base_url: app.baseUrl, api_key: owner.key } });
  t.equal(statSync(home.file).mode & 0o777, 0o600);
  t.equal(statSync(dirname(home.file)).mode & 0o777, 0o700);

  const me = await home.attest(['me']);
  t.match(me.stdout, new RegExp(`^service +${app.baseUrl} \\(of profile default in `));
  const listed = await home.attest(['profiles']);
  t.match(listed.stdout, /^\* +default +live +svc_live_…\w{4} +http:/m);
  for (const { stdout, stderr } of [made, me, listed]) t.notMatch(stdout + stderr, owner.key);

  const again = await home.attest(['login', '--api-key-stdin'], { piped: owner.key });
  t.match(again, { code: 0, stdout: /default in .* \(replaced\)\n$/ }, 'the address is that of the profile');
  t.match(await home.attest(['logout']), { code: 0, stdout: /^forgot profile default/ });
  t.notOk(existsSync(home.file), 'no key is left');
  t.match(await home.attest(['logout']), { code: 2, stderr: /there is no profile default in / });
  t.match(await home.attest(['me']), { code: 2, stderr: /`attest login` keeps one/ });
});

t.test('XDG_CONFIG_HOME is where profiles are kept, if it is an absolute path', async (t) => {
  const home = makeHome(t);
  const elsewhere = join(home.dir, 'elsewhere');
  const env = { XDG_CONFIG_HOME: elsewhere };
  t.equal((await home.attest(login(), { env, piped: owner.key })).code, 0);
  t.ok(existsSync(join(elsewhere, 'attest/profiles.json')));
  t.match(await home.attest(['profiles']), { code: 0, stderr: 'none\n' });
  t.match(await home.attest(login(), { env: { HOME: '' }, piped: owner.key }), {
    code: 2,
    stderr: /HOME is not set/,
  });
});

t.test('a key is typed without echo', async (t) => {
  const home = makeHome(t);
  /** Types at the program on a pseudo-terminal, once it asks. */
  const type = async (keys: string) => {
    const command = [process.execPath, ...PROGRAM, 'login', '--url', app.baseUrl].join(' ');
    const child = spawn(SCRIPT, ['-qfec', command, '/dev/null'], {
      env: { PATH: process.env.PATH, ...home.env },
    });
    let shown = '';
    child.stdout.on('data', (piece) => {
      shown += piece;
    });
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    await until('it asks', async () => shown.includes('(not shown): '));
    child.stdin.write(keys);
    const code = await ended;
    t.notMatch(shown, owner.key.slice(9, -4));
    return { code, shown };
  };
  t.match(await type(`${owner.key}x\x7f\r`), { code: 0, shown: /project +a test/ }, 'with a correction');
  t.match(home.read(), { default: { api_key: owner.key } });
  await home.attest(['logout']);
  t.match(await type(`${owner.key}\x03`), { code: 130, shown: /interrupted: nothing was kept/ });
  t.match(await type('\x04'), { code: 2, shown: /no API key was given/ });
  t.notOk(existsSync(home.file));
});

t.test('nothing is kept of a key that does not work', async (t) => {
  const home = makeHome(t);
  const unknown = await newKey(app);
  await app.pool`DELETE FROM api_key WHERE id = ${unknown.id}`;
  for (const [piped, code, stderr] of [
    ['', 2, /no API key was given/],
    ['svc_live_short', 2, /this is not an API key: it is cut off or mistyped/],
    [`${owner.key.slice(0, -1)}!`, 2, /this is not an API key/],
    [`${owner.key} ${owner.key}`, 2, /this is not an API key/],
    ['x'.repeat(1_000_000), 2, /standard input is too long for an API key/],
    [unknown.key, 1, /auth\.invalid_key.*\n {2}called http.* with key svc_live_…\w{4}, both of login\n$/],
  ] as const) {
    const ended = await home.attest(login(), { piped });
    t.match(ended, { code, stderr, stdout: '' });
    if (piped.startsWith('svc_')) t.notMatch(ended.stderr, piped);
  }
  t.match(await runHere(['login', '--url', app.baseUrl], { env: home.env }), {
    code: 2,
    stderr: /stdin is not a terminal: pipe the key into `attest login --api-key-stdin`/,
  });
  t.match(await home.attest(['login', '--api-key-stdin']), { code: 2, stderr: /no service is named/ });
  t.match(await home.attest(['login', '--url', 'nowhere']), {
    code: 2,
    stderr: /--url is wrong \(it is not a URL\)/,
  });
  for (const name of ['', '-x', '../x', 'a b', 'x'.repeat(65), '__proto__', 'a\x1b[2J']) {
    t.match(await home.attest(login([`--profile=${name}`]), { piped: owner.key }), {
      code: 2,
      stderr: /^error: --profile is not the name of a profile/,
    });
  }
  t.notOk(existsSync(home.file));
});

t.test(
  'address and key come from flags, --profile, environment, a profile, credentials, in this order',
  async (t) => {
    const credentials = {
      base_url: app.baseUrl,
      verify_url: app.verifyUrl,
      live_key: owner.key,
      test_key: tester.key,
    };
    const home = makeHome(t, { 'credentials.json': JSON.stringify(credentials) });
    const data = home.dir;
    await home.attest(login(), { piped: owner.key });
    await home.attest(login(['--profile', 'tests']), { piped: tester.key });
    const live = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: owner.key };
    const cases: [expected: string, args: string[], env?: Record<string, string>][] = [
      ['profile default', []],
      ['profile tests', ['--profile', 'tests']],
      ['profile tests', [], { ATTEST_PROFILE: 'tests' }],
      ['profile default', ['--profile', 'default'], { ATTEST_PROFILE: 'tests' }],
      ['ATTEST_API_KEY', [], live],
      ['ATTEST_API_KEY', [], { ...live, ATTEST_PROFILE: 'tests' }],
      ['ATTEST_API_KEY', [], { ATTEST_API_KEY: tester.key }],
      ['profile tests', ['--profile', 'tests'], live],
      ['--api-key', ['--api-key', tester.key]],
      ['--api-key', ['--api-key', tester.key, '--profile', 'default'], live],
      ['profile default', ['--url', app.baseUrl]],
      [`${data}/credentials.json`, ['--data-dir', data]],
      [`${data}/credentials.json`, ['--environment', 'test'], { DATA_DIR: data }],
      ['profile tests', ['--profile', 'tests'], { DATA_DIR: data }],
    ];
    for (const [expected, args, env = {}] of cases) {
      const { stdout, stderr } = await home.attest(['me', ...args], { env });
      const [, from] = /^key of +(.+)$/m.exec(stdout) ?? [];
      t.match(from, expected, `${args.join(' ')} ${Object.keys(env)}: ${stderr}`);
    }
    for (const [args, stderr, env = {}] of [
      [['--profile', 'gone'], /no profile gone \(of --profile\) in .*: `attest profiles` lists them/],
      [[], /no profile gone \(of ATTEST_PROFILE\)/, { ATTEST_PROFILE: 'gone' }],
      [
        ['--profile', 'tests', '--environment', 'live'],
        /the API key of profile tests .* is not a key of the live environment/,
      ],
      [
        ['--profile', 'tests', '--data-dir', data],
        /'--profile <name>' cannot be used with option '--data-dir <dir>'/,
      ],
    ] as [string[], RegExp, Record<string, string>?][]) {
      t.match(await home.attest(['me', ...args], { env }), { code: 2, stderr });
    }
  },
);

t.test('trust roots come from the service of the profile', async (t) => {
  const home = makeHome(t, { bundle: '{}' });
  await home.attest(login(), { piped: owner.key });
  const file = join(home.dir, 'bundle');
  const { stdout } = await home.attest(['verify', file, '--bundle', file]);
  t.match(
    stdout,
    `${app.baseUrl}/verify/trust_roots.json, fetched now and trusted as served (address from profile default`,
  );
  const env = { ATTEST_VERIFY_URL: app.verifyUrl };
  const other = await home.attest(['verify', file, '--bundle', file], { env });
  t.match(other.stdout, '(address from ATTEST_VERIFY_URL)');
});

t.test('the key of a profile is sent to no other address', async (t) => {
  const home = makeHome(t);
  await home.attest(login(), { piped: owner.key });
  await home.attest(login(['--profile', 'tests']), { piped: tester.key });
  const seen: (string | undefined)[] = [];
  const other = createServer((request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(404).end();
  }).listen(0);
  t.teardown(() => other.close());
  const url = `http://localhost:${(other.address() as AddressInfo).port}`;
  for (const [args, env] of [
    [['--url', url], {}],
    [['--url', url, '--profile', 'tests'], {}],
    [['--url', `${app.baseUrl}/other`], {}],
    [[], { ATTEST_URL: url }],
    [[], { ATTEST_URL: url, ATTEST_PROFILE: 'tests' }],
  ] as [string[], Record<string, string>][]) {
    for (const command of [['me'], ['list'], ['bundle', `sub_${'0'.repeat(26)}`], ['webhooks', 'list']]) {
      const { code, stderr } = await home.attest([...command, ...args], { env });
      t.equal(code, 2);
      t.match(
        stderr,
        /ATTEST_API_KEY is not set, and the key of profile (default|tests) in .* is sent to http:.* only, not to http/,
      );
    }
  }
  t.same(seen, []);
  const own = await home.attest(['me', '--url', url, '--api-key', tester.key]);
  t.match(own, { code: 1, stderr: /\n {2}called http.* of --url with key svc_test_…\w{4}, of --api-key\n$/ });
  t.same([...new Set(seen)], [`Bearer ${tester.key}`]);
});

t.test('an error of the service names address and key, with their sources', async (t) => {
  const home = makeHome(t);
  await home.attest(login(), { piped: owner.key });
  const { code, stderr } = await home.attest(['get', `sub_${'0'.repeat(26)}`, '--json']);
  t.equal(code, 1);
  const from = `profile default in ${home.file}`;
  t.match(JSON.parse(stderr), {
    error: { code: 'submission.not_found' },
    service: { url: app.baseUrl, url_from: from, key: `svc_live_…${owner.key.slice(-4)}`, key_from: from },
  });
  t.notMatch(stderr, owner.key);
});

t.test('variables that come before a new profile are named', async (t) => {
  const home = makeHome(t);
  const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: tester.key };
  const made = await home.attest(['login', '--api-key-stdin', '--json'], { env, piped: owner.key });
  t.match(JSON.parse(made.stdout), {
    profile: 'default',
    file: home.file,
    base_url: app.baseUrl,
    me: {
      project: { id: owner.projectId },
      api_key: { id: owner.id, expires_at: '2100-01-02T03:04:05.000Z' },
    },
  });
  t.match(made.stderr, /^note: ATTEST_URL and ATTEST_API_KEY of the environment come before this profile/);
});
