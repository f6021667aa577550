import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openGit } from '../../../../../src/server/exports/destinations/git/git.js';
import { MAY_MOUNT, mountSmallDisk } from '../../../../support/breaking/small-disk.js';
import { makeObject, write } from '../../../../support/exports/git/destination.js';
import { startHttpsScene } from '../../../../support/exports/git/https-scene.js';
import { EXPIRED_TOKEN, GOOD_TOKEN } from '../../../../support/exports/git/https-server.js';

const { server, setUp } = await startHttpsScene(t);
const OBJECT = makeObject('p/1.jsonl', 'line\n');

/** The message of the error that a promise rejects with; one line without secrets. */
async function failure(t: Test, promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => t.fail('it did not fail'),
    (reason: Error) => reason,
  );
  if (!(error instanceof Error)) return '';
  t.equal(error.name, 'DestinationError');
  t.ok(error.message.length <= 500, 'the error is short');
  t.notMatch(error.message, /[\p{Cc}\p{Cf}]/u, 'the error has no control characters');
  t.notMatch(error.message, GOOD_TOKEN);
  t.notMatch(error.message, Buffer.from(`x-access-token:${GOOD_TOKEN}`).toString('base64'));
  return error.message;
}

t.test('a wrong or expired token and a missing repository have different errors', async (t) => {
  const { open } = await setUp(t);
  const wrong = await open({ token: 'wrong-token-Zq84' });
  const message = await failure(t, write(wrong, OBJECT));
  t.match(message, /reading the branch failed: the server rejected the credentials/);
  t.notMatch(message, 'Zq84');
  const expired = await open({ token: EXPIRED_TOKEN });
  t.match(await failure(t, write(expired, OBJECT)), /HTTP 403.*the server says: This token may not do that/);
});

t.test('a repository that is not there', async (t) => {
  const { context } = await setUp(t);
  const url = `${server.origin}/missing.git`;
  const destination = await openGit(
    { ...context, destination: { ...context.destination, url } },
    { caFile: server.caFile, path: process.env.PATH },
  );
  t.teardown(() => destination.close());
  t.match(await failure(t, write(destination, OBJECT)), /the repository was not found/);
});

t.test("a certificate of an authority that is not trusted, and one for another server's name", async (t) => {
  const { context, open } = await setUp(t);
  t.match(await failure(t, write(await open({}, { caFile: undefined }), OBJECT)), /certificate/);
  const url = `https://localhost:${server.port}/r1.git`;
  const destination = await openGit(
    { ...context, destination: { ...context.destination, url } },
    { caFile: server.caFile, path: process.env.PATH, resolve: async () => ['127.0.0.1'] },
  );
  t.teardown(() => destination.close());
  t.match(await failure(t, write(destination, OBJECT)), /certificate/);
});

t.test('a redirect is not followed', async (t) => {
  const { open } = await setUp(t);
  let calls = 0;
  const elsewhere = createServer((_, response) => {
    calls += 1;
    response.end();
  }).listen(0, '127.0.0.1');
  await once(elsewhere, 'listening');
  t.teardown(() => elsewhere.close());
  const { port } = elsewhere.address() as AddressInfo;
  t.teardown(() => server.intercept(undefined));
  for (const location of [
    `http://127.0.0.1:${port}/r.git/info/refs`,
    `https://127.0.0.1:${port}/x`,
    '/r1.git/x',
  ]) {
    server.intercept((_, response) => {
      response.writeHead(302, { Location: location }).end();
      return true;
    });
    t.match(await failure(t, write(await open(), OBJECT)), /redirects, which is not followed/);
  }
  t.equal(calls, 0);
});

t.test('other answers of a server', async (t) => {
  const { open } = await setUp(t);
  t.teardown(() => server.intercept(undefined));
  for (const [status, expected] of [
    [404, /the repository was not found/],
    [413, /takes no object of this size.*gzip/],
    [429, /throttles requests/],
    [503, /503/],
  ] as const) {
    server.intercept((_, response) => {
      response
        .writeHead(status, { 'Content-Type': 'text/plain' })
        .end(`No \u001b[31m\u202e${GOOD_TOKEN}\r\n`);
      return true;
    });
    t.match(await failure(t, write(await open(), OBJECT)), expected, String(status));
  }
  server.intercept((_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>');
    return true;
  });
  t.match(await failure(t, write(await open(), OBJECT)), /does not speak the smart protocol/);
  server.intercept((request) => {
    request.socket.destroy();
    return true;
  });
  t.match(await failure(t, write(await open(), OBJECT)), /the connection to the server broke/);
});

t.test('garbage in the place of the protocol', async (t) => {
  const { open } = await setUp(t);
  t.teardown(() => server.intercept(undefined));
  const type = (service: string) => ({ 'Content-Type': `application/x-${service}-advertisement` });
  const line = (text: string) => `${(text.length + 4).toString(16).padStart(4, '0')}${text}`;
  const head = `${line('# service=git-upload-pack\n')}0000`;
  const zero = '0'.repeat(40);
  for (const body of [
    '',
    '0000',
    'zzzz',
    `${head}ffff`,
    `${head}${line('version 2\n')}0000`,
    randomBytes(1000),
  ]) {
    server.intercept((_, response) => {
      response.writeHead(200, type('git-upload-pack')).end(body);
      return true;
    });
    await failure(t, write(await open(), OBJECT));
  }
  for (const oid of [zero.slice(1), `${zero}${'1'.repeat(24)}`, '../../../etc/passwd', '-x']) {
    server.intercept((_, response) => {
      const ref = line(`${oid} refs/heads/main\0 agent=git/2.0\n`);
      response.writeHead(200, type('git-upload-pack')).end(`${head}${ref}0000`);
      return true;
    });
    await failure(t, write(await open(), OBJECT));
  }
});

t.test('a hook that declines is quoted, its control characters and our secrets left out', async (t) => {
  const { repository, open } = await setUp(t);
  const text = `Branch is \\033[31mprotected\\033[0m\\007: \\r\\ttoken ${GOOD_TOKEN}`;
  await repository.hook('pre-receive', `printf '${text}\\n' >&2; printf 'x%.0s' $(seq 5000) >&2; exit 1`);
  const message = await failure(t, write(await open(), OBJECT));
  t.match(message, /the server refused the push \(pre-receive hook declined\); the server says: Branch is/);
  t.match(message, 'token [secret]');
  t.strictSame(await repository.subjects('main'), []);
});

t.test('an object that the server finds too large', async (t) => {
  const { repository, open } = await setUp(t);
  const text = "error: File p/1.jsonl is 120.00 MB; this exceeds GitHub's file size limit of 100.00 MB";
  await repository.hook('pre-receive', `echo "${text}" >&2; exit 1`);
  t.match(await failure(t, write(await open(), OBJECT)), /takes no object of this size.*gzip.*120\.00 MB/);
  await repository.hook('pre-receive', 'exit 0');
  await repository.git('config', 'receive.maxInputSize', '1000');
  const large = makeObject('p/1.jsonl', randomBytes(5000));
  t.match(await failure(t, write(await open(), large)), /takes no object of this size/);
});

t.test('a server that stops to answer', async (t) => {
  const { open } = await setUp(t);
  t.teardown(() => server.intercept(undefined));
  server.intercept(() => true);
  const silent = await open({}, { limits: { stallMs: 500 } });
  t.match(await failure(t, write(silent, OBJECT)), /reading the branch made no progress for 0.5 s/);
  server.intercept(({ method }) => method === 'POST');
  const half = await open({}, { limits: { stallMs: 500 } });
  t.match(await failure(t, half.probe(new AbortController().signal)), /made no progress/);
});

t.test('a fetch that needs more disk than its bound, because the server knows no filters', async (t) => {
  const { repository, open } = await setUp(t);
  await repository.commit('main', { large: randomBytes(1_500_000).toString('hex') });
  await repository.git('config', 'uploadpack.allowFilter', 'false');
  const bounded = await open({}, { limits: { maxFetchBytes: 1_000_000 } });
  t.match(await failure(t, write(bounded, OBJECT)), /the fetch needs more than 0 MiB/);
  const free = await open({}, { limits: { maxRepositoryBytes: 100_000 } });
  t.strictSame(await write(free, OBJECT), { outcome: 'written' });
  t.strictSame(await write(free, makeObject('p/2.jsonl', 'two')), { outcome: 'written' });
});

t.test('a repository with SHA-256 object names, empty or not', async (t) => {
  const { repository, open } = await setUp(t);
  await rm(repository.path, { recursive: true });
  await mkdir(repository.path);
  await repository.git('init', '--quiet', '--bare', '--object-format=sha256');
  await repository.git('config', 'http.receivepack', 'true');
  t.match(await failure(t, write(await open(), OBJECT)), /SHA-256 object names are not supported/);
  await repository.commit('main', { 'README.md': 'theirs' });
  t.match(await failure(t, write(await open(), OBJECT)), /SHA-256 object names are not supported/);
});

t.test('a branch within another branch', async (t) => {
  const { repository, open } = await setUp(t);
  await repository.commit('main', { 'README.md': 'theirs' });
  const destination = await open({ branch: 'main/exports' }, { random: () => 0, limits: { maxAttempts: 2 } });
  t.match(await failure(t, write(destination, OBJECT)), /refused the push/);
});

t.test('a list of branches without end', async (t) => {
  const { open } = await setUp(t);
  t.teardown(() => server.intercept(undefined));
  const line = (text: string) => `${(text.length + 4).toString(16).padStart(4, '0')}${text}`;
  const refs = Array.from({ length: 1000 }, (_, i) =>
    line(`${'1'.repeat(40)} refs/heads/${'x'.repeat(900)}${i}\n`),
  );
  server.intercept((_, response) => {
    response.writeHead(200, { 'Content-Type': 'application/x-git-upload-pack-advertisement' });
    response.write(`${line('# service=git-upload-pack\n')}0000`);
    const more = () => {
      while (!response.destroyed && response.write(refs.join('')));
    };
    response.on('drain', more);
    more();
    return true;
  });
  const destination = await open({}, { limits: { maxMemoryBytes: 300 * 1024 ** 2 } });
  t.match(await failure(t, write(destination, OBJECT)), /more memory than it may have/);
});

t.test('a full disk of ours', async (t) => {
  if (!MAY_MOUNT) return t.comment('only root may mount');
  const { context, open } = await setUp(t);
  const disk = await mountSmallDisk(t, 4);
  const onDisk = { ...context, temporaryDirectory: disk.path };
  const destination = await openGit(onDisk, { caFile: server.caFile, path: process.env.PATH });
  await write(destination, OBJECT);
  disk.fill();
  const large = makeObject('p/2.jsonl', randomBytes(100_000));
  t.match(await failure(t, write(destination, large)), /the disk of the service's machine is full/);
  t.match(
    await failure(t, openGit(onDisk, { caFile: server.caFile, path: process.env.PATH })),
    /temporary files \(ENOSPC\)/,
  );
  disk.free();
  t.strictSame(await write(destination, large), { outcome: 'written' });
  await destination.close();
  t.ok(await open(), 'another disk is not concerned');
});

t.test('a machine without git, with an old one, or with wrong settings', async (t) => {
  const { context, open } = await setUp(t);
  const message = await failure(t, open({}, { path: '/nonexistent' }));
  t.match(message, /no program git: its operator must install the package git/);
  t.match(await failure(t, open({}, { caFile: '/nonexistent' })), /certificate authorities cannot be read/);
  const bin = join(context.temporaryDirectory, 'bin');
  await mkdir(bin);
  await writeFile(join(bin, 'git'), '#!/bin/sh\necho git version 2.30.2\n');
  await chmod(join(bin, 'git'), 0o755);
  t.match(await failure(t, open({}, { path: bin })), /too old \(git version 2\.30\.2\).*2\.37 or newer/);
});

t.test('a deleted temporary directory', async (t) => {
  const { context, open } = await setUp(t);
  const destination = await open();
  for (const name of await readdir(context.temporaryDirectory))
    await rm(join(context.temporaryDirectory, name), { recursive: true });
  t.match(await failure(t, write(destination, OBJECT)), /a temporary directory of the service was deleted/);
});
