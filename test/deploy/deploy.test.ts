/** What is in deploy/: settings that exist, secrets that processes take, units that systemd takes. */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { certificateChain } from '../../src/config/certificate-chain.js';
import { readAdminConfig, readClientConfig } from '../../src/config/client-config.js';
import { readConfig } from '../../src/config/config.js';
import { PROGRAM } from '../support/calling/run-cli.js';
import { OPENSSL } from '../support/foreign/openssl.js';
import { SYSTEMD_ANALYZE } from '../support/foreign/shell/systemd-analyze.js';
import { findFreePort } from '../support/servers/free-port.js';
import { testNatsUrl } from '../support/servers/shared-nats.js';
import { testDatabase } from '../support/servers/shared-servers.js';
import { until } from '../support/until.js';
import { makeOpensslTsa, serve, serveTsa } from '../support/witnesses/openssl-tsa.js';
import '../support/foreign/curl.js';
import { chartSettings, DEPLOY, readCompose, readDeploy, readEnvironment, unitEnvironment } from './files.js';

const run = promisify(execFile);
const UNITS = readdirSync(join(DEPLOY, 'systemd')).filter((name) => name.endsWith('.service'));

/** The names that the program looks for in its environment. */
function knownSettings(): Set<string> {
  const asked = new Set<string>();
  const env = new Proxy<Record<string, string>>(
    {},
    { get: (_, name) => void (typeof name === 'string' && asked.add(name)) },
  );
  const readers = [
    ...(['api', 'worker', 'witness'] as const).map((process) => () => readConfig(env, { process })),
    () => readAdminConfig(env),
    () => readClientConfig(env, 'live', { isNamed: false, find: () => undefined }),
  ];
  for (const read of readers) t.throws(read, { name: 'ConfigError' });
  return asked;
}

t.test('every setting that deploy/ names is one', async (t) => {
  const known = knownSettings();
  t.ok(known.has('SECRET_KEY_FILE'));
  const services = Object.entries(readCompose().services);
  const ours = services.filter(([, { image }]) => image.includes('ATTEST_IMAGE'));
  t.same(ours.map(([name]) => name).sort(), ['api-1', 'api-2', 'migrate', 'worker-1', 'worker-2']);
  const chart = ['_helpers.tpl', 'api.yaml', 'worker.yaml', 'migrate.yaml'];
  const named: [where: string, names: string[]][] = [
    ...ours.map(([name, { environment = {} }]) => [name, Object.keys(environment)] as [string, string[]]),
    ['attest.env', Object.keys(readEnvironment(readDeploy('systemd/attest.env')))],
    ['Dockerfile', [...readDeploy('Dockerfile').matchAll(/^ENV (\w+)=/gm)].map(([, name = '']) => name)],
    ...UNITS.map(
      (unit) => [unit, Object.keys(unitEnvironment(readDeploy(`systemd/${unit}`)))] as [string, string[]],
    ),
    ...chart.map((name) => [name, chartSettings(readDeploy(`helm/templates/${name}`))] as [string, string[]]),
  ];
  for (const [where, names] of named) {
    t.not(names.length, 0, where);
    t.same(
      names.filter((name) => !known.has(name)),
      [],
      where,
    );
  }
});

/** A folder with the secrets of make-secrets.sh. */
function makeSecrets(dir: string): string {
  const env = { ...process.env, PATH: `${join(OPENSSL, '..')}:${process.env.PATH}` };
  return execFileSync('sh', [join(DEPLOY, 'make-secrets.sh'), 'secrets'], {
    cwd: dir,
    env,
    encoding: 'utf8',
  });
}

t.test('secrets are made once, for their owner only', async (t) => {
  const dir = t.testdir({});
  t.match(makeSecrets(dir), /^made secrets\/secret-key$/m);
  const names = readdirSync(join(dir, 'secrets')).sort();
  const contents = names.map((name) => readFileSync(join(dir, 'secrets', name), 'utf8'));
  for (const name of names) t.equal(statSync(join(dir, 'secrets', name)).mode & 0o777, 0o600, name);
  t.equal(statSync(join(dir, 'secrets')).mode & 0o777, 0o700);
  t.notMatch(makeSecrets(dir), /made/);
  t.same(
    names.map((name) => readFileSync(join(dir, 'secrets', name), 'utf8')),
    contents,
  );
  const wanted = Object.values(readCompose().secrets).map(({ file }) => file.replace('./secrets/', ''));
  t.same(
    wanted.filter((name) => !names.includes(name)),
    [],
    'all that compose.yaml mounts',
  );
  for (const unit of UNITS) {
    const credentials = [
      ...readDeploy(`systemd/${unit}`).matchAll(/^LoadCredential=(.+):\/etc\/attest\/secrets\/(.+)$/gm),
    ];
    for (const [, id, file = ''] of credentials)
      t.ok(id === file && names.includes(file), `${unit}: ${file}`);
  }
});

t.test('an API process starts with the environment of compose.yaml, and its health is read', async (t) => {
  const dir = t.testdir({});
  makeSecrets(dir);
  const secret = (name: string) => join(dir, 'secrets', name);
  writeFileSync(secret('database-url'), `${await testDatabase(t)}\n`);
  writeFileSync(secret('nats-url'), `${await testNatsUrl()}\n`);
  const opsPort = String(await findFreePort());
  const { environment = {} } = readCompose().services['api-1'] ?? {};
  const inFolder = Object.entries(environment).map(([name, value]) => [
    name,
    value.replaceAll('/run/secrets/', `${dir}/secrets/`),
  ]);
  const env = {
    PATH: process.env.PATH,
    ...Object.fromEntries(inFolder),
    BASE_URL: 'https://attest.example.com',
    LOG_DOMAIN: 'deploy.example.com',
    WITNESSES: join(DEPLOY, 'witnesses/witnesses.json'),
    CHECKPOINT_REGISTER: join(dir, 'register'),
    TRUSTED_PROXIES: 'none',
    ALLOW_INSECURE_DESTINATIONS: 'false',
    LOG_LEVEL: 'warn',
    PORT: '0',
    ADMIN_HOST: '127.0.0.1',
    ADMIN_PORT: '0',
    OPS_PORT: opsPort,
  };
  const health = (path: string) =>
    run(process.execPath, [join(DEPLOY, 'health.mjs'), path], { env: { OPS_PORT: opsPort } }).then(
      ({ stdout }) => stdout,
      ({ stdout }: { stdout: string }) => `failed: ${stdout}`,
    );
  t.match(await health('livez'), /^failed: .* does not answer: ECONNREFUSED/);
  const api = spawn(process.execPath, [...PROGRAM, 'api'], {
    env,
    cwd: dir,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const ended = once(api, 'exit');
  t.teardown(() => api.kill('SIGKILL'));
  await until('the process is ready', async () => (await health('readyz')).startsWith('200 '));
  t.match(await health('livez'), /^200 /);
  t.match(await health('nothing'), /^failed: 404 /);
  api.kill('SIGTERM');
  t.equal((await ended)[0], 0);
});

t.test('systemd takes the units, and rates them well', async (t) => {
  const dir = t.testdir({});
  for (const unit of UNITS) {
    const text = readDeploy(`systemd/${unit}`).replaceAll('/usr/local/bin/attest', process.execPath);
    writeFileSync(join(dir, unit), text);
    const path = join(dir, unit);
    const { stdout, stderr } = await run(SYSTEMD_ANALYZE, ['verify', '--man=no', path]);
    t.notMatch(`${stdout}${stderr}`, unit.replace('@.service', '@'), `verify ${unit}`);
    const rated = await run(SYSTEMD_ANALYZE, [
      'security',
      '--offline=yes',
      '--threshold=20',
      '--no-pager',
      path,
    ]);
    t.match(rated.stdout, /Overall exposure level for .*: 1\.\d OK/, `security ${unit}`);
  }
});

t.test('the chain of a time-stamping authority is as WITNESSES takes it', async (t) => {
  const dir = t.testdir({});
  const authority = await makeOpensslTsa({ dir, curve: 'P-256', signerDigest: 'sha256' });
  const { url, close } = await serveTsa(authority);
  t.teardown(close);
  const script = (...args: string[]) => run('sh', [join(DEPLOY, 'tsa-chain.sh'), ...args]);
  const { stdout, stderr } = await script(url, join(dir, 'root.pem'));
  t.same(
    certificateChain.parse(stdout).map((pem) => new X509Certificate(pem).raw),
    authority.chain.map((der) => Buffer.from(der)),
  );
  t.match(stderr, /^sha256 Fingerprint=/im);
  await t.rejects(script(url), { code: 1, stderr: /give the file of issuer=.*Foreign root/ });
  const wrong = await serve((_, response) => void response.end('no time stamp'));
  t.teardown(wrong.close);
  await t.rejects(script(wrong.url), { code: 1, stderr: /answers no time stamp/ });
  await t.rejects(script('http://127.0.0.1:1'), { code: 1, stderr: /does not answer/ });
});
