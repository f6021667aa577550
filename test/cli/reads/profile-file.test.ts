/** The file of profiles when it is damaged, exposed, or written by several at once. */
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { createApiKey } from '../../../src/server/keys/api-key.js';
import { startApp } from '../../support/app.js';
import { PROGRAM } from '../../support/calling/run-cli.js';
import { newKey } from '../../support/calling/test-keys.js';
import { makeHome } from './homes.js';

const app = await startApp(t);
const owner = await newKey(app);

const good = { base_url: app.baseUrl, api_key: owner.key };
const fileOf = (profiles: unknown) => JSON.stringify({ profiles });
const isRoot = process.getuid?.() === 0;

t.test('a file that is none of profiles is an error that names it and the remedy', async (t) => {
  const home = makeHome(t);
  for (const [content, problem] of [
    ['', 'is empty'],
    ['{', 'is not JSON, or is cut off'],
    [fileOf({ default: good }).slice(0, -1), 'is not JSON, or is cut off'],
    ['[]', 'has no object "profiles"'],
    ['null', 'is not a JSON object'],
    ['"profiles"', 'is not a JSON object'],
    ['{}', 'has no object "profiles"'],
    [fileOf([good]), 'has no object "profiles"'],
    [fileOf(null), 'has no object "profiles"'],
    ['{"profiles":{},"profiles":{}}', 'has a member twice'],
    [`${fileOf({})}${' '.repeat(1024 * 1024)}`, 'is larger than 1 MiB'],
    [`{"profiles":${'['.repeat(500_000)}`, 'is not JSON, or is cut off'],
    ['{"profiles":{"\u{10ffff}\\ud800":1}}\0', 'is not JSON, or is cut off'],
  ] as const) {
    await home.write(content);
    for (const args of [
      ['me'],
      ['profiles'],
      ['logout'],
      ['login', '--url', app.baseUrl, '--api-key-stdin'],
    ]) {
      const { code, stdout, stderr } = await home.attest(args, { piped: owner.key });
      t.match({ code, stdout }, { code: 2, stdout: '' }, `${args[0]} ${content.slice(0, 20)}`);
      t.equal(
        stderr,
        `error: ${home.file} ${problem}: mend or remove it, then log in again with \`attest login\`\n`,
      );
    }
    const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: owner.key };
    t.equal((await home.attest(['me'], { env })).code, 0, 'the file is not read where it is not needed');
  }
});

t.test('a damaged profile harms no other one, and a login replaces it', async (t) => {
  const home = makeHome(t);
  const otherKey = createApiKey(Environment.LIVE, randomBytes);
  for (const [damaged, member] of [
    [null, 'base_url'],
    ['text', 'base_url'],
    [{}, 'base_url'],
    [{ ...good, base_url: 1 }, 'base_url'],
    [{ ...good, base_url: 'file:///etc/passwd' }, 'base_url'],
    [{ ...good, base_url: 'http://user:word@host' }, 'base_url'],
    [{ ...good, api_key: undefined }, 'api_key'],
    [{ ...good, api_key: [owner.key] }, 'api_key'],
    [{ ...good, api_key: `${owner.key}\n` }, 'api_key'],
    [{ ...good, api_key: otherKey.toLowerCase() }, 'api_key'],
  ] as const) {
    await home.write(fileOf({ damaged, default: good, '\u001b[2J\u202e': good, ['__proto__']: good }));
    t.equal((await home.attest(['me'])).code, 0);
    const { code, stderr } = await home.attest(['me', '--profile', 'damaged']);
    t.equal(code, 2);
    const remedy = '`attest login --profile damaged` makes it anew';
    t.equal(stderr, `error: profile damaged in ${home.file} has no valid ${member}: ${remedy}\n`);
    const { stdout } = await home.attest(['profiles']);
    t.match(stdout, /^ +damaged +- +- +profile damaged in .* has no valid/m);
    t.notOk(stdout.includes('\u001b') || stdout.includes('\u202e'), 'names are printable');
    t.notMatch(stdout, owner.key);
  }
  const args = ['login', '--profile', 'damaged', '--url', app.baseUrl, '--api-key-stdin'];
  t.equal((await home.attest(args, { piped: owner.key })).code, 0);
  t.same(home.read().damaged, good);
  t.equal(Object.keys(home.read()).length, 4, 'the others are kept');
});

t.test('a file that others may read or that is no file is not used', async (t) => {
  const home = makeHome(t);
  await home.write(fileOf({ default: good }));
  for (const mode of [0o644, 0o640, 0o604, 0o620]) {
    chmodSync(home.file, mode);
    const { code, stderr } = await home.attest(['me']);
    t.equal(code, 2);
    t.equal(
      stderr,
      `error: other users have access to ${home.file}, which has API keys: chmod 600 ${home.file}\n`,
    );
  }
  chmodSync(home.file, 0o600);
  t.equal((await home.attest(['me'])).code, 0);
  if (isRoot) {
    chownSync(home.file, 65_534, 65_534);
    t.match(await home.attest(['me']), {
      code: 2,
      stderr: /belongs to another user \(65534\): its keys are not used/,
    });
  }
  rmSync(home.file);
  mkdirSync(home.file);
  t.match(await home.attest(['me']), { code: 2, stderr: /profiles\.json is not a file: remove it/ });
  rmSync(home.file, { recursive: true });
  execFileSync('mkfifo', ['-m', '600', home.file]);
  t.match(await home.attest(['me']), { code: 2, stderr: /profiles\.json is not a file: remove it/ });
  rmSync(home.file);
  symlinkSync(home.file, home.file);
  t.match(await home.attest(['me']), { code: 2, stderr: /cannot be read: ELOOP/ });
  rmSync(dirname(home.file), { recursive: true });
  symlinkSync('/dev/null', dirname(home.file));
  t.match(
    await home.attest(['me']),
    { code: 2, stderr: /`attest login` keeps one/ },
    'as if there were none',
  );
  t.match(await home.attest(['login', '--url', app.baseUrl, '--api-key-stdin'], { piped: owner.key }), {
    code: 2,
    stderr: /profiles\.json cannot be written: (EEXIST|ENOTDIR)/,
  });
});

t.test('a symbolic link is followed, and stays one', async (t) => {
  const home = makeHome(t);
  await home.write(fileOf({ default: good }));
  const target = join(home.dir, 'elsewhere.json');
  renameSync(home.file, target);
  symlinkSync(target, home.file);
  t.equal((await home.attest(['me'])).code, 0);
  const args = ['login', '--profile', 'b', '--url', app.baseUrl, '--api-key-stdin'];
  t.equal((await home.attest(args, { piped: owner.key })).code, 0);
  t.ok(lstatSync(home.file).isSymbolicLink());
  t.same(Object.keys(home.read()), ['default', 'b']);
});

/** A login in a process of its own. */
function startLogin(env: Record<string, string>, profile: string) {
  const args = ['login', '--profile', profile, '--url', app.baseUrl, '--api-key-stdin'];
  const child = spawn(process.execPath, [...PROGRAM, ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  child.stdin.on('error', () => {});
  child.stdin.end(owner.key);
  return { child, ended: once(child, 'exit') };
}

t.test('logins at once lose no profile', async (t) => {
  const home = makeHome(t);
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const codes = await Promise.all(names.map(async (name) => (await startLogin(home.env, name).ended)[0]));
  t.same(
    codes,
    names.map(() => 0),
  );
  t.same(Object.keys(home.read()).sort(), names);
});

t.test('a login that is killed leaves the profiles as they were or with the new one', async (t) => {
  const home = makeHome(t);
  await home.write(fileOf({ default: good }));
  writeFileSync(`${home.file}.0123456789ab.tmp`, fileOf({ default: good }));
  const startedMs = Date.now();
  await startLogin(home.env, 'first').ended;
  const tookMs = Date.now() - startedMs;
  for (let i = 0; i < 6; i++) {
    const { child, ended } = startLogin(home.env, `killed${i}`);
    await delay(tookMs * (0.6 + 0.08 * i));
    child.kill('SIGKILL');
    await ended;
    const profiles = home.read();
    t.same([profiles.default, profiles.first], [good, good]);
    for (const one of Object.values(profiles)) t.same(one, good);
  }
  t.equal(await startLogin(home.env, 'last').ended.then(([code]) => code), 0, 'no lock is left behind');
  t.same(home.read().last, good);
  t.same(readdirSync(dirname(home.file)).sort(), ['profiles.json', 'profiles.json.lock'], 'nor half a file');
});
