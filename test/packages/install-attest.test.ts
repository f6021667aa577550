/** The script install-attest.sh, as build servers run it. */
import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import t from 'tap';
import { writeInstallScript } from '../../src/generate/packages/install-script.js';
import { stageCli } from '../../src/generate/packages/stage-cli.js';
import { makeTarball } from '../../src/generate/packages/tarball.js';
import { SHELLCHECK } from '../support/foreign/shell/shellcheck.js';
import '../support/foreign/curl.js';
import '../support/foreign/shell/wget.js';
import { until } from '../support/until.js';
import { execute } from './install.js';
import {
  install,
  installedVersion,
  makeRelease,
  newFolder,
  pathWith,
  serve,
  withInstalled,
} from './releases.js';

const SOURCE = resolve('src/generate/packages/install-attest.sh');

/** Root writes everywhere. */
const UNPRIVILEGED = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};

t.test('shellcheck has nothing to report', async (t) => {
  const { code, stdout } = await execute(SHELLCHECK, [SOURCE], { cwd: process.cwd(), env: process.env });
  t.same({ code, stdout }, { code: 0, stdout: '' });
});

t.test('the packed program is installed from a server, by curl and by wget, and once', async (t) => {
  const root = process.cwd();
  const out = newFolder(t);
  const { path: tarball } = await makeTarball(stageCli, { root, out });
  const script = writeInstallScript({ root, out }, tarball);
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  const release = { version, tarball, script };
  const url = await serve(t, release);
  const machines = [pathWith(t, {}), pathWith(t, { lacks: ['curl'], adds: ['wget'] })];
  for (const path of machines) {
    const home = newFolder(t);
    const { code, stdout, stderr } = await install(release, home, {
      url,
      path,
      args: ['--version', version],
    });
    t.same({ code, stderr }, { code: 0, stderr: '' });
    t.equal(stdout.split('\n')[0], `attest ${version} is in ${join(home, 'bin')}`);
    t.equal(await installedVersion(home), version);
    const target = readlinkSync(join(home, 'bin/attest'));
    t.match(await install(release, home, { path }), { code: 0, stderr: '' }, 'nothing is downloaded');
    t.equal(readlinkSync(join(home, 'bin/attest')), target);
  }
});

t.test('a newer version takes the place of the one before', async (t) => {
  const { home } = await withInstalled(t);
  const release = makeRelease(t, '1.1.0');
  t.match(await install(release, home, { args: ['--file', release.tarball, '--version', 'v1.1.0'] }), {
    code: 0,
  });
  t.equal(await installedVersion(home), '1.1.0');
  t.equal(readdirSync(join(home, 'bin/.attest')).length, 1);
  t.match(
    readlinkSync(join(home, 'bin/attest')),
    /^\.attest\/1\.1\.0\.[0-9a-f]{12}\.\w+\/package\/dist\/attest\/main\.js$/,
  );
  t.ok(existsSync(release.tarball), 'the file that was given stays');
});

t.test('an installation that lacks files is replaced', async (t) => {
  const home = newFolder(t);
  const release = makeRelease(t, '1.0.0');
  const args = ['--file', release.tarball];
  await install(release, home, { args });
  rmSync(join(home, 'bin', readlinkSync(join(home, 'bin/attest'))));
  t.match(await install(release, home, { args }), { code: 0, stderr: '' });
  t.equal(await installedVersion(home), '1.0.0');
  t.equal(readdirSync(join(home, 'bin/.attest')).length, 1);
});

t.test('a download that is changed, cut off or not there leaves what was installed', async (t) => {
  const { home, assertUntouched } = await withInstalled(t);
  const release = makeRelease(t, '1.1.0');
  const changed = await serve(t, release, (response, bytes) =>
    response.end(Buffer.concat([bytes, Buffer.of(0)])),
  );
  const cut = await serve(t, release, (response, bytes) => {
    response.writeHead(200, { 'content-length': bytes.length });
    response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy());
  });
  const short = await serve(t, release, (response, bytes) =>
    response.end(bytes.subarray(0, bytes.length / 2)),
  );
  const missing = await serve(t, release, (response) => response.writeHead(404).end('not found'));
  const wrongSum =
    /is not attestation-service-cli-1\.1\.0\.tgz: its SHA-256 is [0-9a-f]{64}, expected [0-9a-f]{64}\n$/;
  for (const [url, message] of [
    [changed, wrongSum],
    [short, wrongSum],
    [cut, /cannot be downloaded\n$/],
    [missing, /cannot be downloaded\n$/],
    ['http://127.0.0.1:1', /cannot be downloaded\n$/],
    ['', /names no address: set ATTEST_DOWNLOAD_URL, or use --file\n$/],
  ] as const) {
    const { code, stderr } = await install(release, home, { url });
    t.equal(code, 1);
    t.match(stderr, message);
    await assertUntouched();
  }
});

t.test('a package that does not run leaves what was installed', async (t) => {
  const { home, assertUntouched } = await withInstalled(t);
  const release = makeRelease(t, '1.1.0', { program: '#!/bin/sh\nexit 1\n' });
  const { code, stderr } = await install(release, home, { args: ['--file', release.tarball] });
  t.equal(code, 1);
  t.match(stderr, /main\.js does not run\n$/);
  await assertUntouched();
});

t.test('an interrupted download leaves what was installed', async (t) => {
  const { home, assertUntouched } = await withInstalled(t);
  const release = makeRelease(t, '1.1.0');
  let isAsked = false;
  const url = await serve(t, release, (response, bytes) => {
    isAsked = true;
    response.writeHead(200, { 'content-length': bytes.length });
    response.write(bytes.subarray(0, 10));
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    isAsked = false;
    // A group of its own, as a terminal has it: its programs get the signal, too.
    const child = spawn('sh', [release.script, '--dir', join(home, 'bin')], {
      env: { PATH: process.env.PATH, HOME: home, ATTEST_DOWNLOAD_URL: url },
      stdio: 'ignore',
      detached: true,
    });
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    await until('the download begins', () => isAsked);
    process.kill(-child.pid!, signal);
    t.not(await ended, 0);
    await assertUntouched();
  }
});

t.test('a machine without Node, with an old one or without a tool gets one line', async (t) => {
  const { home, assertUntouched } = await withInstalled(t);
  const release = makeRelease(t, '1.1.0');
  const old = (version: string) => ({ fakes: { node: `echo ${version}` } });
  for (const [machine, message] of [
    [{ lacks: ['node'] }, /attest needs Node 20\.19 or newer, and there is no node in PATH: https:/],
    [old('v18.20.8'), /attest needs Node 20\.19 or newer; \S+\/node is v18\.20\.8\n/],
    [old('v20.18.3'), /node is v20\.18\.3\n/],
    [old('v9.0.0'), /node is v9\.0\.0\n/],
    [old('hello'), /has no version of Node: hello\n/],
    [{ fakes: { node: 'exit 1' } }, /node does not run\n/],
    [{ lacks: ['tar'] }, /tar is missing/],
    [{ lacks: ['sha256sum'] }, /sha256sum and shasum are missing/],
    [{ lacks: ['curl'] }, /curl and wget are missing/],
  ] as const) {
    const { code, stdout, stderr } = await install(release, home, {
      path: pathWith(t, machine),
      url: 'http://x',
    });
    t.same({ code, stdout }, { code: 1, stdout: '' });
    t.match(stderr, message);
    t.equal(stderr.split('\n').length, 2, stderr);
    await assertUntouched();
  }
  for (const version of ['v20.19.0', 'v24.1.0', 'v26.0.0-nightly20260101'])
    t.match(
      await install(release, home, { path: pathWith(t, old(version)), args: ['--file', release.tarball] }),
      {
        code: 0,
      },
    );
});

t.test('a folder that cannot be written, or has another attest, is left as it is', async (t) => {
  const release = makeRelease(t, '1.1.0');
  const [taken, other] = [newFolder(t), newFolder(t)];
  writeFileSync(join(taken, 'bin'), 'a file');
  mkdirSync(join(other, 'bin'));
  writeFileSync(join(other, 'bin/attest'), 'of npm');
  const args = ['--file', release.tarball];
  t.match(await install(release, taken, { args }), {
    code: 1,
    stderr: /bin cannot be written: use --dir\n$/,
  });
  t.match(await install(release, other, { args }), {
    code: 1,
    stderr: /attest is not from this script: remove it/,
  });
  t.equal(readFileSync(join(other, 'bin/attest'), 'utf8'), 'of npm');
  t.same(readdirSync(join(other, 'bin/.attest')), []);
});

t.test('a folder without write permission is left as it is', async (t) => {
  const release = makeRelease(t, '1.1.0');
  const home = newFolder(t);
  mkdirSync(join(home, 'bin'), { mode: 0o555 });
  const args = ['--file', release.tarball];
  const { code, stderr } = await install(release, home, { args, ...UNPRIVILEGED });
  t.equal(code, 1);
  t.match(stderr, /bin cannot be written: use --dir\n$/);
  t.same(readdirSync(join(home, 'bin')), []);
});

t.test('wrong arguments, and a script that is cut off, do nothing', async (t) => {
  const { home, assertUntouched } = await withInstalled(t);
  const release = makeRelease(t, '1.1.0', { repository: { url: 'git+https://github.com/owner/name.git' } });
  for (const [args, message] of [
    [['--nonsense'], /unknown argument --nonsense; --help shows the usage\n$/],
    [['--file'], /--file needs a value/],
    [['--dir', ''], /--dir needs a value/],
    [['--version', '1.0.0'], /this script installs 1\.1\.0, not 1\.0\.0: use that of release 1\.0\.0\n$/],
  ] as const) {
    const { code, stderr } = await install(release, home, { args });
    t.equal(code, 2);
    t.match(stderr, message);
  }
  t.match(await install({ ...release, script: SOURCE }, home, {}), {
    code: 2,
    stderr: /npm run pack writes that/,
  });
  t.match(await install(release, home, { args: ['--help'] }), {
    code: 0,
    stdout:
      /^Installs attest 1\.1\.0.*default: https:\/\/github\.com\/owner\/name\/releases\/download\/v1\.1\.0\)/s,
  });
  const text = readFileSync(release.script, 'utf8');
  const cut = join(newFolder(t), 'cut.sh');
  for (const end of [-4000, -2000, -500, -16, -12, -9, -5, -2]) {
    writeFileSync(cut, text.slice(0, end));
    await install({ ...release, script: cut }, home, { args: ['--file', release.tarball] });
    await assertUntouched();
  }
});
