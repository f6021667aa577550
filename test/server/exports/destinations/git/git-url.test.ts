import type { MessageInitShape } from '@bufbuild/protobuf';
import t, { type Test } from 'tap';
import type { ExportDestinationSchema } from '../../../../../gen/attestation/v1/exports_pb.js';
import { openGit } from '../../../../../src/server/exports/destinations/git/git.js';
import { parseGitUrl } from '../../../../../src/server/exports/destinations/git/git-url.js';
import { gitContext, makeObject, openGitUntil, write } from '../../../../support/exports/git/destination.js';
import { GOOD_TOKEN, startGitHttps } from '../../../../support/exports/git/https-server.js';
import { makeRepositoriesDirectory, makeRepository } from '../../../../support/exports/git/repositories.js';
import '../../../../support/foreign/sshd.js';

const NAMES: Record<string, string[]> = {
  'git.example': ['93.184.216.34', '2606:2800:220:1:248:1893:25c8:1946'],
  'inside.example': ['10.0.0.5'],
  'half.example': ['93.184.216.34', '127.0.0.1'],
};
const resolve = async (name: string) =>
  NAMES[name] ?? Promise.reject(Object.assign(new Error(`queryA ENOTFOUND ${name}`), { code: 'ENOTFOUND' }));
const HOST_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEFYgs7VOFBqSVYJWOZyTiZvqDVpZSmxUpxYlO7RLBXZ';
const SSH_KEY = '-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n';

type Members = MessageInitShape<typeof ExportDestinationSchema>;

async function open(t: Test, members: Members, { allowInsecure = false } = {}) {
  return openGitUntil(t, { ...(await gitContext(t, members)), allowInsecure }, { resolve });
}

/** Opens and probes a destination that is forbidden. @returns why */
async function problemOf(t: Test, members: Members, rules = { allowInsecure: false }): Promise<string> {
  try {
    await (await open(t, members, rules)).probe(new AbortController().signal);
    return 'allowed';
  } catch (error) {
    return (error as Error).message;
  }
}

t.test('repositories on the public internet are allowed', async (t) => {
  for (const url of [
    'https://git.example/example/attestations.git',
    'https://git.example:8443/a/b/c',
    'https://93.184.216.34/x.git',
    'https://[2606:2800:220:1:248:1893:25c8:1946]/x.git',
    'https://git.example/project/_git/With%20space',
  ]) {
    await t.resolves(open(t, { url, token: 't' }), url);
  }
  for (const url of [
    'ssh://git@git.example/example/attestations.git',
    'ssh://git@git.example:2222/~user/x.git',
    'ssh://APKAEXAMPLE@git.example/v1/repos/x',
  ]) {
    await t.resolves(open(t, { url, sshKey: SSH_KEY, hostKey: HOST_KEY }), url);
  }
});

t.test('other urls are rejected, with the reason', async (t) => {
  for (const [url, why] of [
    ['', /https:\/\/ or ssh:\/\//],
    ['nonsense', /https:\/\/ or ssh:\/\//],
    ['ext::sh -c "touch /tmp/x"', /https:\/\/ or ssh:\/\//],
    ['ext::ssh://git@git.example/x', /https:\/\/ or ssh:\/\//],
    ['file:///etc/passwd', /https:\/\/ or ssh:\/\//],
    ['/srv/git/x.git', /https:\/\/ or ssh:\/\//],
    ['git://git.example/x.git', /https:\/\/ or ssh:\/\//],
    ['http://git.example/x.git', /https:\/\/ or ssh:\/\//],
    ['ftp://git.example/x.git', /https:\/\/ or ssh:\/\//],
    ['git+ssh://git@git.example/x.git', /https:\/\/ or ssh:\/\//],
    ['git@git.example:x.git', /https:\/\/ or ssh:\/\//],
    ['HTTPS://git.example/x.git', /https:\/\/ or ssh:\/\//],
    [' https://git.example/x.git', /https:\/\/ or ssh:\/\//],
    ['-oProxyCommand=touch x', /https:\/\/ or ssh:\/\//],
    ['--upload-pack=touch x', /https:\/\/ or ssh:\/\//],
    ['https:/\\git.example/x.git', /https:\/\/ or ssh:\/\//],
    ['https://user@git.example/x.git', /credentials/],
    ['https://user:token@git.example/x.git', /credentials/],
    ['https://:token@git.example/x.git', /credentials/],
    ['ssh://git:password@git.example/x.git', /credentials/],
    ['https://git.example', /a host and a path/],
    ['https://git.example/x.git?token=secret', /without .*query/],
    ['https://git.example/x.git#main', /without .*fragment/],
    ['https://git.example/x y.git', /without spaces/],
    ['https://git.example/x\n.git', /without spaces/],
    ['https://git.example/x.git\n', /without spaces/],
    ['https://git.example/x%0a.git', /a host and a path/],
    ['https://git.example/x%00.git', /a host and a path/],
    ['https://git.example/a/../../x.git', /a host and a path/],
    ['https://git.example/./x.git', /a host and a path/],
    ["https://git.example/'$(touch x)`touch y`", /a host and a path/],
    ['https://git.example./x.git', /a host and a path/],
    ['https://git.example\\@inside.example/x.git', /a host and a path|credentials/],
    ['https://git。example/x.git', /a host and a path/],
    ['https://-oProxyCommand=x/x.git', /a host and a path/],
    ['ssh://git@-oProxyCommand=touch%20x/x.git', /a host and a path/],
    ['ssh://-oProxyCommand=x@git.example/x.git', /a host and a path/],
    ['ssh://git@git.example/x;touch y', /a host and a path/],
    ['ssh://git.example/x.git', /ssh:\/\/git@host/],
    ['https://git.example:80/x.git', /port/],
    ['https://git.example:22/x.git', /port/],
    ['https://git.example:0/x.git', /port/],
    ['https://git.example:99999/x.git', /port/],
    ['ssh://git@git.example:443/x.git', /port/],
    ['https://unknown.example/x.git', /has no address/],
    ['https://inside.example/x.git', /public/],
    ['https://half.example/x.git', /public/],
    ['https://127.0.0.1/x.git', /public/],
    ['https://2130706433/x.git', /public/],
    ['https://0x7f.1/x.git', /public/],
    ['https://0177.0.0.1/x.git', /public/],
    ['https://[::1]/x.git', /public/],
    ['https://[::ffff:10.0.0.1]/x.git', /public/],
    ['https://169.254.169.254/latest/meta-data', /public/],
    ['https://localhost/x.git', /has no address|public/],
    [`https://${'a'.repeat(3000)}/x.git`, /a host and a path|has no address/],
  ] as const) {
    const isSsh = url.startsWith('ssh:');
    const members = isSsh ? { url, sshKey: SSH_KEY, hostKey: HOST_KEY } : { url, token: 't' };
    t.match(await problemOf(t, members), why, JSON.stringify(url));
  }
  const numeric = { url: 'ssh://git@0x7f.1/x.git', sshKey: SSH_KEY, hostKey: HOST_KEY };
  t.match(await problemOf(t, numeric), /public/);
});

t.test('a long hostile url is rejected at once', (t) => {
  for (const url of [
    `https://a${'/a'.repeat(1000)}\n`,
    `https://${'a.'.repeat(1000)}`,
    `https://a/${'%2'.repeat(900)}`,
  ])
    t.type(parseGitUrl({ allowInsecure: false }, url), 'string');
  t.end();
});

t.test('the secrets are those of the transport', async (t) => {
  const https = { url: 'https://git.example/x.git' };
  const ssh = { url: 'ssh://git@git.example/x.git' };
  for (const [members, why] of [
    [https, /needs token/],
    [{ ...https, token: 't', sshKey: SSH_KEY }, /not with ssh_key/],
    [{ ...https, token: 't', hostKey: HOST_KEY }, /not with ssh_key/],
    [ssh, /needs ssh_key and host_key/],
    [{ ...ssh, sshKey: SSH_KEY }, /needs ssh_key and host_key/],
    [{ ...ssh, hostKey: HOST_KEY }, /needs ssh_key and host_key/],
    [{ ...ssh, sshKey: SSH_KEY, hostKey: HOST_KEY, token: 't' }, /not with token/],
    [{ ...ssh, sshKey: SSH_KEY, hostKey: 'ssh-ed25519 AAAA' }, /host_key must be/],
    [{ ...ssh, sshKey: SSH_KEY, hostKey: HOST_KEY.replace('ed25519', 'rsa') }, /host_key must be/],
    [{ ...https, token: 't', branch: 'a.lock' }, /\.lock/],
    [{ ...https, token: 't', branch: 'a.lock/b' }, /\.lock/],
  ] as const) {
    const context = await gitContext(t, members);
    await t.rejects(openGit({ ...context, allowInsecure: false }), {
      name: 'DestinationError',
      message: why,
    });
  }
});

t.test('http and loopback are for development', async (t) => {
  const development = { allowInsecure: true };
  const loopback = { url: 'http://127.0.0.1:9/x.git', token: 't' };
  t.notMatch(await problemOf(t, loopback, development), /public/);
  const inside = { url: 'http://10.0.0.5:8080/x.git', token: 't' };
  t.match(await problemOf(t, inside, development), /public/);
});

t.test('the address is checked and pinned on each connect', async (t) => {
  const root = await makeRepositoriesDirectory(t);
  const server = await startGitHttps(t, root, 'DNS:git.example');
  await makeRepository(root, 'x.git');
  const url = `https://git.example:${server.port}/x.git`;
  const context = await gitContext(t, { url, token: GOOD_TOKEN });
  let address = '127.0.0.1';
  const options = { caFile: server.caFile, resolve: async () => [address] };
  const development = await openGitUntil(t, context, options);
  t.strictSame(await write(development, makeObject('p/1.jsonl', 'x')), { outcome: 'written' });
  address = '10.0.0.5';
  const rebound = { name: 'DestinationError', message: 'the host git.example is not a public address' };
  await t.rejects(write(development, makeObject('p/2.jsonl', 'x')), rebound);
  address = '127.0.0.1';
  const strictly = await openGitUntil(t, { ...context, allowInsecure: false }, options);
  const before = server.requests.length;
  await t.rejects(write(strictly, makeObject('p/2.jsonl', 'x')), rebound);
  t.equal(server.requests.length, before);
});
