/** The TUF repository, from its making to the replacement of each key, as clients with the first root see it. */
import { readFileSync, statSync } from 'node:fs';
import t, { type Test } from 'tap';
import { until } from '../../../support/until.js';
import { openTuf } from './scene.js';

const { app, mirrorURL, file, tuf, done, update, replaceLogKey } = await openTuf(t);

/** Every client, one that has followed from the first version on and one that starts from the first root, has this log. */
async function allHave(t: Test, log: string): Promise<void> {
  for (const folder of ['followers', `new-${log}`]) {
    for (const [name, text] of Object.entries(await update(folder))) t.match(text, log, `${name}, ${folder}`);
  }
}

async function timestamp(): Promise<{ version: number; keyId: string }> {
  const { signed, signatures } = JSON.parse(await (await fetch(`${mirrorURL}/timestamp.json`)).text());
  return { version: signed.version, keyId: signatures[0].keyid };
}

t.test('without a repository there is a 404 that names the command', async (t) => {
  for (const path of ['/', '/timestamp.json', '/1.root.json', '/../tuf/x', '/targets/%00']) {
    const answer = await fetch(mirrorURL + path);
    t.equal(answer.status, 404, path);
    t.equal(
      await answer.text(),
      'there is no TUF repository: the operator of this service makes one with attest tuf init\n',
    );
  }
  t.match(await tuf('status'), {
    code: 0,
    stdout: /^there is no TUF repository: make one with attest tuf init\n$/,
  });
  t.match(await tuf('publish', '--key', file('online.pem')), {
    code: 1,
    stderr: /there is no TUF repository/,
  });
});

t.test('init makes keys and a repository, and shows what it signs', async (t) => {
  const keys = ['--key', file('root.pem'), '--key', file('spare.pem')];
  const made = await done('init', ...keys, '--out', file('root.json'));
  t.match(made.stderr, /^\+ trusted_root\.json: log https:\/\/live\.log\.example\.com with the key MCow/m);
  t.match(
    made.stderr,
    /^root: 1 of the keys [0-9a-f]{64}, [0-9a-f]{64} sign root and targets, [0-9a-f]{64} snapshot and timestamp$/m,
  );
  t.match(made.stdout, /^ROLE .*\nroot +1 .*\ntargets .*\nsnapshot .*\ntimestamp .*\n$/);
  t.equal(statSync(file('root.pem')).mode & 0o777, 0o600);
  t.equal(readFileSync(file('root.json'), 'utf8'), await (await fetch(`${mirrorURL}/1.root.json`)).text());
  t.match(await tuf('init', ...keys, '--out', file('again.json')), {
    code: 0,
    stderr: /there is a TUF repository with these keys/,
  });
  t.equal(readFileSync(file('again.json'), 'utf8'), readFileSync(file('root.json'), 'utf8'));
  t.match(await tuf('init', ...keys, '--out', file('root.json')), { code: 2, stderr: /root\.json exists/ });
  await allHave(t, 'live.log.example.com');
});

t.test('versions never change and timestamp.json is not cached for long', async (t) => {
  const of = async (path: string) => (await fetch(`${mirrorURL}/${path}`)).headers.get('cache-control');
  t.equal(await of('1.root.json'), 'public, max-age=31536000, immutable');
  t.equal(await of('timestamp.json'), 'public, max-age=5');
  t.equal(await of('2.root.json'), 'public, max-age=5');
  const { headers, status } = await fetch(`${mirrorURL}/timestamp.json`, { method: 'HEAD' });
  t.match([status, headers.get('content-type')], [200, 'application/json']);
  t.equal((await fetch(`${mirrorURL}/timestamp.json`, { method: 'DELETE' })).status, 405);
});

t.test('a new key of the log is a remark until it is published, then clients have it', async (t) => {
  await replaceLogKey();
  t.match(
    (await done('status')).stdout,
    /^trusted_root\.json differs from the trust roots: run attest tuf publish$/m,
  );
  const published = await done('publish', '--key', file('spare.pem'));
  t.match(published.stderr, /^\+ trusted_root\.json: log https:\/\/live-2\.log\.example\.com/m);
  t.notMatch(published.stdout, /differs/);
  await allHave(t, 'live-2.log.example.com');
});

t.test('a root key is replaced, then the one after it', async (t) => {
  await done('rotate', '--key', file('root.pem'), '--new-key', file('root-2.pem'));
  t.match(await tuf('publish', '--key', file('root.pem')), {
    code: 2,
    stderr: /root\.pem is not a key of root version 2/,
  });
  await done(
    'rotate',
    '--key',
    file('root-2.pem'),
    '--new-key',
    file('root-3.pem'),
    '--new-key',
    file('root-4.pem'),
    '--threshold',
    '2',
  );
  t.match(await tuf('publish', '--key', file('root-3.pem')), {
    code: 1,
    stderr: /is not signed by 2 of the targets keys of root version 3/,
  });
  await done('publish', '--key', file('root-3.pem'), '--key', file('root-4.pem'));
  await allHave(t, 'live-2.log.example.com');
});

t.test('the online key is replaced', async (t) => {
  const before = await timestamp();
  const keys = ['--key', file('root-3.pem'), '--key', file('root-4.pem')];
  await done('rotate', ...keys, '--online-key');
  t.not((await timestamp()).keyId, before.keyId);
  await replaceLogKey();
  await done('publish', ...keys);
  await allHave(t, 'live-3.log.example.com');
  t.match(await tuf('rotate', ...keys, '--online-key'), {
    code: 1,
    stderr: /the online key is the last of TUF_KEY_FILE/,
  });
});

t.test('after a backup was restored, clients that have seen later versions accept the next', async (t) => {
  const keys = ['--key', file('root-3.pem'), '--key', file('root-4.pem')];
  await app.pool`CREATE TABLE backup AS TABLE tuf_file`;
  await done('publish', ...keys);
  await done('publish', ...keys);
  await update('followers');
  const { version } = await timestamp();
  await app.pool.begin(async (tx) => {
    await tx`DELETE FROM tuf_file`;
    await tx`INSERT INTO tuf_file TABLE backup`;
  });
  t.ok((await timestamp()).version < version);
  for (const [name, text] of Object.entries(await update('followers'))) t.match(text, /rejected/, name);
  await until('the clock is beyond', async () => Date.now() / 1000 > version + 1);
  await done('publish', ...keys);
  await allHave(t, 'live-3.log.example.com');
});

t.test('the audit log has each publication', async (t) => {
  const rows =
    await app.pool`SELECT detail->'root' AS root FROM audit_entry WHERE resource_id = 'tuf' ORDER BY at`;
  t.same(
    rows.map(({ root }) => root),
    [1, 1, 2, 3, 3, 4, 4, 4, 4, 4],
  );
});
