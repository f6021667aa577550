import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openGit } from '../../../../../src/server/exports/destinations/git/git.js';
import { gitContext, makeObject, openGitUntil, write } from '../../../../support/exports/git/destination.js';
import { makeRepositoriesDirectory, makeRepository } from '../../../../support/exports/git/repositories.js';
import { startGitSsh } from '../../../../support/exports/git/ssh-server.js';

const root = await makeRepositoriesDirectory(t);
const server = await startGitSsh(t);
const { sshKey, hostKey } = server;
const OBJECT = makeObject('p/1.jsonl', 'line\n');
let repositories = 0;

async function setUp(t: Test, members: { sshKey?: string; hostKey?: string } = {}) {
  repositories += 1;
  const repository = await makeRepository(root, `r${repositories}.git`);
  const context = await gitContext(t, {
    url: `${server.origin}${repository.path}`,
    sshKey,
    hostKey,
    ...members,
  });
  return { repository, context };
}

t.test('objects are committed and the probe is written over ssh', async (t) => {
  const { repository, context } = await setUp(t);
  const destination = await openGitUntil(t, context);
  await destination.probe(new AbortController().signal);
  t.strictSame(await write(destination, OBJECT), { outcome: 'written' });
  t.strictSame(await write(destination, makeObject('p/1.jsonl', 'new', 2)), { outcome: 'written' });
  await repository.commit('main', { theirs: 'x' });
  t.strictSame(await write(destination, makeObject('p/2.jsonl', 'two')), { outcome: 'written' });
  t.equal(await repository.show('main', 'p/1.jsonl'), 'new');
  t.equal((await repository.subjects('main')).length, 5);
});

t.test('a key with the line ends of Windows, and without the last one', async (t) => {
  const { context } = await setUp(t, { sshKey: sshKey.trim().replaceAll('\n', '\r\n') });
  t.strictSame(await write(await openGitUntil(t, context), OBJECT), { outcome: 'written' });
});

t.test('a server with another key gets nothing', async (t) => {
  const { publicKey } = await server.makeKey('other-host');
  const { repository, context } = await setUp(t, { hostKey: publicKey });
  const written = write(await openGitUntil(t, context), OBJECT);
  await t.rejects(written, { name: 'DestinationError', message: /the server's key is not host_key/ });
  t.strictSame(await repository.subjects('main'), []);
});

t.test('a key that the server does not know, and one that is damaged', async (t) => {
  const other = await server.makeKey('other-user');
  const unknown = await setUp(t, { sshKey: other.sshKey });
  const written = write(await openGitUntil(t, unknown.context), OBJECT);
  await t.rejects(written, { name: 'DestinationError', message: /the server rejected ssh_key/ });
  const lines = sshKey.split('\n');
  const damaged = await setUp(t, { sshKey: [...lines.slice(0, 3), ...lines.slice(4)].join('\n') });
  const failed = write(await openGitUntil(t, damaged.context), OBJECT);
  await t.rejects(failed, { name: 'DestinationError', message: /ssh cannot read ssh_key|rejected ssh_key/ });
});

t.test('keys with a passphrase and malformed ones are rejected before use', async (t) => {
  const { sshKey: locked } = await server.makeKey('locked', 'a passphrase');
  for (const [key, message] of [
    [locked, /must not have a passphrase/],
    ['nonsense', /must be a private key/],
    [`${sshKey}\nProxyCommand touch x`, /must be a private key/],
  ] as const) {
    const { context } = await setUp(t, { sshKey: key });
    await t.rejects(openGit(context, { path: process.env.PATH }), { name: 'DestinationError', message });
    t.strictSame(await readdir(context.temporaryDirectory), []);
  }
});

t.test('a repository that is not there', async (t) => {
  const { context } = await setUp(t);
  const url = `${server.origin}/nowhere.git`;
  const destination = await openGitUntil(t, { ...context, destination: { ...context.destination, url } });
  await t.rejects(write(destination, OBJECT), { message: /the repository was not found/ });
});

t.test('the next address is used if the first cannot be connected to', async (t) => {
  const { context } = await setUp(t);
  const url = context.destination.url.replace('127.0.0.1', 'git.example');
  const options = { resolve: async () => ['127.0.0.2', '127.0.0.1'] };
  const destination = await openGitUntil(
    t,
    { ...context, destination: { ...context.destination, url } },
    options,
  );
  t.strictSame(await write(destination, OBJECT), { outcome: 'written' });
});

t.test('no server listens', async (t) => {
  const { context } = await setUp(t);
  const url = context.destination.url.replace(`:${server.port}/`, ':1/');
  const destination = await openGitUntil(t, { ...context, destination: { ...context.destination, url } });
  await t.rejects(write(destination, OBJECT), { message: /the server refused the connection/ });
});

t.test('the key is in a file that only this user can read, until the destination is closed', async (t) => {
  const { context } = await setUp(t);
  const { temporaryDirectory } = context;
  const destination = await openGit(context, { path: process.env.PATH });
  const [name = ''] = await readdir(temporaryDirectory);
  t.equal((await stat(join(temporaryDirectory, name))).mode & 0o777, 0o700);
  const holders: string[] = [];
  for (const entry of await readdir(join(temporaryDirectory, name), { withFileTypes: true })) {
    const path = join(temporaryDirectory, name, entry.name);
    if (!entry.isFile()) continue;
    t.equal((await stat(path)).mode & 0o777, 0o600, entry.name);
    if ((await readFile(path, 'utf8')).includes('PRIVATE KEY')) holders.push(entry.name);
  }
  t.strictSame(holders, ['key']);
  await write(destination, OBJECT);
  await destination.close();
  t.strictSame(await readdir(temporaryDirectory), []);
});
