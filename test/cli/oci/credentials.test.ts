/** Credentials of Docker's configuration, at registries that want a password or a token. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { findCredentials } from '../../../src/cli/oci/docker-config.js';
import { PASSWORD, startDockerRegistry, USER } from '../../support/registries/docker-registry.js';
import type { TestRegistry } from '../../support/registries/image.js';
import { REFRESH_TOKEN } from '../../support/registries/registry-tokens.js';
import { REPOSITORY, startService } from './attested-image.js';

const { attest, attestImage } = await startService(t);

const base64 = (text: string) => Buffer.from(text).toString('base64');
const AUTH = base64(`${USER}:${PASSWORD}`);
const registries = {
  basic: { host: await startDockerRegistry(t, 'basic'), authorization: `Basic ${AUTH}` },
  token: { host: await startDockerRegistry(t, 'token') },
};

/** A folder of Docker's configuration, with credential helpers on a PATH of its own. */
function docker(t: Test, config: unknown, helpers: Record<string, string> = {}) {
  const dir = t.testdir();
  writeFileSync(join(dir, 'config.json'), typeof config === 'string' ? config : JSON.stringify(config));
  mkdirSync(join(dir, 'bin'));
  for (const [name, script] of Object.entries(helpers)) {
    const file = join(dir, 'bin', `docker-credential-${name}`);
    writeFileSync(file, `#!/bin/sh\n${script}\n`);
    chmodSync(file, 0o755);
  }
  return { DOCKER_CONFIG: dir, PATH: `${join(dir, 'bin')}:${process.env.PATH}` };
}

const json = (username: string, secret: string) =>
  `echo '${JSON.stringify({ Username: username, Secret: secret })}'`;
const NONE = 'echo credentials not found in native keychain; exit 1';

/** An authorization to put an image, by the registry's own challenge. */
async function bearer(host: string): Promise<string> {
  const challenge = (await fetch(`http://${host}/v2/`)).headers.get('www-authenticate') ?? '';
  const [realm = '', service = ''] = [...challenge.matchAll(/"([^"]*)"/g)].map(([, value]) => value);
  const query = new URLSearchParams({ service, scope: `repository:${REPOSITORY}:pull,push` });
  const response = await fetch(`${realm}?${query}`, { headers: { authorization: `Basic ${AUTH}` } });
  const { token } = (await response.json()) as { token: string };
  return `Bearer ${token}`;
}

t.test('a registry that wants a password is shown that of the configuration', async (t) => {
  const { host } = registries.basic;
  const { image, id } = await attestImage(registries.basic);
  const auths = (name: string, auth: string) => ({ auths: { [name]: { auth } } });
  const good = { [host]: json(USER, PASSWORD) };
  const cases: [string, unknown, Record<string, string>][] = [
    ['under its name', auths(host, AUTH), {}],
    ['under its address', auths(`https://${host}/v2/`, AUTH), {}],
    ['by its helper', { credHelpers: { [host]: 'own' } }, { own: good[host] ?? '' }],
    [
      'by the store of all',
      { credsStore: 'all' },
      { all: `read key; test "$key" = ${host} && ${good[host]}` },
    ],
    ['in the file, where the store has none', { credsStore: 'all', ...auths(host, AUTH) }, { all: NONE }],
    [
      'by its helper, before the file',
      { credHelpers: { [host]: 'own' }, ...auths(host, base64('a:b')) },
      { own: good[host] ?? '' },
    ],
  ];
  for (const [what, config, helpers] of cases) {
    const said = await attest(['push', image, id], docker(t, config, helpers));
    t.match(said, { code: 0, stdout: /attached/ }, `${what}: ${said.stderr}`);
  }
});

t.test('a token is fetched with the password, or with an identity token', async (t) => {
  const { host } = registries.token;
  const registry: TestRegistry = { host, authorization: await bearer(host) };
  const { image, id } = await attestImage(registry);
  const cases: [string, unknown, Record<string, string>][] = [
    ['password', { auths: { [host]: { auth: AUTH } } }, {}],
    ['identity token', { auths: { [host]: { auth: AUTH, identitytoken: REFRESH_TOKEN } } }, {}],
    ['identity token of a helper', { credsStore: 'all' }, { all: json('<token>', REFRESH_TOKEN) }],
  ];
  for (const [what, config, helpers] of cases) {
    const said = await attest(['push', image, id], docker(t, config, helpers));
    t.match(said, { code: 0, stdout: /attached/ }, `${what}: ${said.stderr}`);
  }
  const wrong = docker(t, { auths: { [host]: { identitytoken: 'stale' } } });
  t.match(await attest(['push', image, id], wrong), {
    code: 1,
    stderr: /rejects the credentials of .*config\.json/,
  });
  t.match(await attest(['push', image, id]), {
    code: 1,
    stderr: /gives no token without credentials: docker login/,
  });
});

t.test('what is wrong with credentials is said, and they are not', async (t) => {
  const { host } = registries.basic;
  const { image, id } = await attestImage(registries.basic);
  const helped = { credHelpers: { [host]: 'own' } };
  const cases: [string, unknown, Record<string, string>, number, RegExp][] = [
    ['no file for it', { auths: {} }, {}, 1, /asks for credentials: docker login/],
    ['of another registry', { auths: { 'x.example': { auth: AUTH } } }, {}, 1, /asks for credentials/],
    [
      'of a registry whose name is a part',
      { auths: { [host.slice(0, -1)]: { auth: AUTH } } },
      {},
      1,
      /asks for/,
    ],
    [
      'wrong password',
      { auths: { [host]: { auth: base64('a:s3cret') } } },
      {},
      1,
      /does not accept the credentials of/,
    ],
    ['no base64', { auths: { [host]: { auth: 's3cret' } } }, {}, 2, /"auth" of .* is not base64/],
    ['no object', { auths: { [host]: 's3cret' } }, {}, 1, /asks for credentials/],
    ['no objects', { auths: [], credHelpers: 1, credsStore: {} }, {}, 1, /asks for credentials/],
    ['identity token', { auths: { [host]: { identitytoken: 's3cret' } } }, {}, 1, /takes no identity token/],
    ['no JSON', '{"auths":', {}, 2, /config\.json is not JSON/],
    ['an array', '[]', {}, 1, /asks for credentials/],
    ['too large', ' '.repeat(1024 * 1024 + 1), {}, 2, /config\.json is too large/],
    ['no such helper', { credsStore: 'nowhere' }, {}, 2, /docker-credential-nowhere failed \(ENOENT\)/],
    ['a path as a helper', { credsStore: '../bin/x' }, {}, 2, /has a malformed name/],
    ['a helper that fails', helped, { own: 'echo s3cret; exit 7' }, 2, /docker-credential-own failed \(7\)/],
    ['nonsense', helped, { own: 'echo s3cret' }, 2, /printed an answer that is not JSON/],
    ['no secret', helped, { own: `echo '{"Username":"s3cret"}'` }, 2, /has no Username and Secret/],
    ['endless output', helped, { own: 'yes s3cret' }, 2, /own failed \(ERR_CHILD_PROCESS_STDIO_MAXBUFFER\)/],
    ['a helper that has none', helped, { own: NONE }, 1, /asks for credentials/],
  ];
  for (const [what, config, helpers, code, stderr] of cases) {
    const said = await attest(['push', image, id], docker(t, config, helpers));
    t.match(said, { code, stderr, stdout: '' }, what);
    t.notMatch(said.stderr, /s3cret/, what);
  }
});

t.test('a helper that hangs is ended, and what it started is not waited for', async (t) => {
  const env = docker(t, { credsStore: 'slow' }, { slow: 'trap "" TERM; sleep 60 & sleep 60' });
  await t.rejects(findCredentials(env, 'r.example', 200), {
    message: 'the credential helper docker-credential-slow had no answer in 0.2 s',
  });
});

t.test('Docker Hub has the key that docker login gives it', async (t) => {
  const env = docker(t, { auths: { 'https://index.docker.io/v1/': { auth: AUTH } } });
  t.match(await findCredentials(env, 'docker.io'), { username: USER, password: PASSWORD });
  t.equal(await findCredentials(env, 'r.example'), undefined);
  t.equal(await findCredentials({}, 'docker.io'), undefined);
});
