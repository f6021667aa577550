import { existsSync } from 'node:fs';
import { Readable } from 'node:stream';
import t from 'tap';
import { EXPORT_ID, makeObject, write } from '../../../../support/exports/git/destination.js';
import { startHttpsScene } from '../../../../support/exports/git/https-scene.js';
import { READ_ONLY_TOKEN } from '../../../../support/exports/git/https-server.js';
import { data } from '../../../../support/exports/git/repositories.js';

const { setUp } = await startHttpsScene(t);
const WRITTEN = { outcome: 'written' };
const SUPERSEDED = { outcome: 'superseded', revision: undefined };
const signal = new AbortController().signal;

t.test('the first object makes the branch, and further objects are added to it', async (t) => {
  const { repository, open } = await setUp(t);
  const destination = await open();
  t.strictSame(await write(destination, makeObject('a/b/1.jsonl', 'one\n')), WRITTEN);
  t.strictSame(await write(destination, makeObject('a/b/2.jsonl', 'two\n')), WRITTEN);
  t.equal(await repository.show('main', 'a/b/1.jsonl'), 'one');
  t.equal(await repository.show('main', 'a/b/2.jsonl'), 'two');
  t.strictSame(await repository.subjects('main'), [
    'Export 2.jsonl, revision 1',
    'Export 1.jsonl, revision 1',
  ]);
  await repository.git('fsck', '--strict');
});

t.test('a commit names its author, object, revision and hash', async (t) => {
  const { repository, open } = await setUp(t);
  const object = makeObject('p/btc_1.jsonl', 'line\n', 7);
  await write(await open({ branch: 'exports/live' }), object);
  const body = await repository.git('log', '-1', '--format=%an%n%B', 'exports/live');
  t.match(body, 'attestation-service\nExport btc_1.jsonl, revision 7\n');
  t.match(body, `Object: p/btc_1.jsonl\nRevision: 7\nSHA-256: ${Buffer.from(object.sha256).toString('hex')}`);
});

t.test('a later revision replaces the object, and nothing else changes', async (t) => {
  const { repository, open } = await setUp(t);
  await repository.commit('main', { 'README.md': 'theirs', 'p/theirs.txt': 'theirs' });
  const destination = await open();
  await write(destination, makeObject('p/1.jsonl', 'old'));
  await write(destination, makeObject('p/1.jsonl', 'new', 2));
  t.equal(await repository.show('main', 'p/1.jsonl'), 'new');
  t.equal(await repository.git('diff', '--name-only', 'main~2', 'main'), 'p/1.jsonl');
  t.equal(await repository.show('main', 'p/theirs.txt'), 'theirs');
});

t.test('content that is already there makes no commit', async (t) => {
  const { repository, open } = await setUp(t);
  await write(await open(), makeObject('p/1.jsonl', 'same'));
  const again = await open();
  t.strictSame(await write(again, makeObject('p/1.jsonl', 'same')), WRITTEN);
  t.strictSame(await write(again, makeObject('p/1.jsonl', 'same', 2)), WRITTEN);
  t.equal((await repository.subjects('main')).length, 1);
});

t.test('a third revision with the content of the first stops a stalled writer of the second', async (t) => {
  const { repository, open } = await setUp(t);
  const stalled = await open();
  const current = await open();
  await write(stalled, makeObject('p/1.jsonl', 'first'));
  let attempts = 0;
  const isCurrent = async () => {
    attempts += 1;
    if (attempts > 1) return false;
    t.strictSame(await write(current, makeObject('p/1.jsonl', 'first', 3)), WRITTEN);
    return true;
  };
  t.strictSame(await write(stalled, makeObject('p/1.jsonl', 'second', 2), { isCurrent }), SUPERSEDED);
  t.equal(await repository.show('main', 'p/1.jsonl'), 'first');
  t.strictSame(await write(current, makeObject('p/1.jsonl', 'first', 3)), WRITTEN);
  t.equal((await repository.subjects('main')).length, 2, 'repeated, it makes no further commit');
});

t.test('a writer that is not current writes nothing, not even the branch', async (t) => {
  const { repository, open } = await setUp(t);
  const isCurrent = async () => false;
  t.strictSame(await write(await open(), makeObject('p/1.jsonl', 'x'), { isCurrent }), SUPERSEDED);
  t.strictSame(await repository.subjects('main'), []);
});

t.test("a stalled writer does not undo its successor's push", async (t) => {
  const { repository, open } = await setUp(t);
  const stalled = await open();
  const successor = await open();
  let current = true;
  const isCurrent = async () => {
    if (!current) return false;
    await write(successor, makeObject('p/1.jsonl', 'redacted', 2));
    current = false;
    return true;
  };
  t.strictSame(await write(stalled, makeObject('p/1.jsonl', 'secret'), { isCurrent }), SUPERSEDED);
  t.equal(await repository.show('main', 'p/1.jsonl'), 'redacted');
  t.equal((await repository.subjects('main')).length, 1);
});

t.test('a concurrent push by another writer is built upon', async (t) => {
  const { repository, open } = await setUp(t);
  await repository.commit('main', { 'README.md': 'theirs' });
  const foreign = ['1', '2', '3'];
  const isCurrent = async () => {
    const name = foreign.shift();
    if (name !== undefined) await repository.commit('main', { [`theirs-${name}`]: name });
    return true;
  };
  const destination = await open({}, { random: () => 0 });
  t.strictSame(await write(destination, makeObject('p/1.jsonl', 'ours'), { isCurrent }), WRITTEN);
  const subjects = await repository.subjects('main');
  t.strictSame(subjects.slice(0, 2), ['Export 1.jsonl, revision 1', 'Somebody adds theirs-3']);
  t.equal(subjects.length, 5);
  t.equal(await repository.show('main', 'p/1.jsonl'), 'ours');
});

t.test('a branch that others push to at each attempt is given up with an error', async (t) => {
  const { repository, open } = await setUp(t);
  let count = 0;
  const isCurrent = async () => {
    count += 1;
    await repository.commit('main', { [`theirs-${count}`]: 'x' });
    return true;
  };
  const destination = await open({}, { random: () => 0, limits: { maxAttempts: 3 } });
  const written = write(destination, makeObject('p/1.jsonl', 'ours'), { isCurrent });
  await t.rejects(written, {
    name: 'DestinationError',
    message: /others pushed to the branch main during each of 3 attempts.*\((?:fetch first|non-fast-forward)/,
  });
  t.equal(count, 3);
});

t.test('concurrent writers of different objects all end in one linear history', async (t) => {
  const { repository, open } = await setUp(t);
  const names = ['a', 'b', 'c'].map((writer) => [1, 2].map((n) => `p/${writer}/${n}.jsonl`));
  await Promise.all(
    names.map(async (own) => {
      const destination = await open();
      await Promise.all(own.map((name) => write(destination, makeObject(name, name))));
    }),
  );
  for (const name of names.flat()) t.equal(await repository.show('main', name), name);
  t.equal(await repository.git('rev-list', '--count', 'main'), '6');
  t.equal(await repository.git('rev-list', '--count', '--merges', 'main'), '0');
});

t.test('a branch that its owner rewrites or deletes is built upon in its new state', async (t) => {
  const { repository, open } = await setUp(t);
  const destination = await open();
  await write(destination, makeObject('p/1.jsonl', 'one'));
  await repository.git('update-ref', '-d', 'refs/heads/main');
  await write(destination, makeObject('p/2.jsonl', 'two'));
  t.equal(await repository.git('ls-tree', '-r', '--name-only', 'main'), 'p/2.jsonl');
  await repository.commit('main', { 'p/3.txt': 'theirs' });
  await repository.git('update-ref', 'refs/heads/main', 'main~1');
  await write(destination, makeObject('p/4.jsonl', 'four'));
  t.equal(await repository.git('ls-tree', '-r', '--name-only', 'main'), 'p/2.jsonl\np/4.jsonl');
});

t.test('a file or folder of others in the way of an object is not replaced', async (t) => {
  const { repository, open } = await setUp(t);
  await repository.commit('main', { p: 'a file', 'q/1.jsonl/x': 'a folder' });
  const destination = await open();
  const inTheWay = { name: 'DestinationError', message: /in the branch, (p|q\/1\.jsonl) is in the way/ };
  await t.rejects(write(destination, makeObject('p/1.jsonl', 'x')), inTheWay);
  await t.rejects(write(destination, makeObject('q/1.jsonl', 'x')), inTheWay);
  t.equal((await repository.subjects('main')).length, 1);
});

t.test('symbolic links, submodules, hooks, filters and attributes of the branch do nothing', async (t) => {
  const { repository, context, open } = await setUp(t);
  const bait = `${context.temporaryDirectory}/bait`;
  const link = (path: string, target: string) => `M 120000 inline ${path}\n${data(target)}`;
  const attributes = '* filter=lfs diff=evil merge=evil working-tree-encoding=utf-16 export-subst\n';
  const modules = `[submodule "m"]\n\tpath = m\n\turl = ext::sh -c "touch ${bait}"\n\tupdate = !touch ${bait}\n`;
  const commit = 'commit refs/heads/main\ncommitter A <a@b> 1700000000 +0000\ndata 1\nx\n';
  const files = `M 100644 inline .gitattributes\n${data(attributes)}M 100755 inline hooks/post-checkout\n${data(`touch ${bait}`)}`;
  const links = `${link('p/1.jsonl', bait)}${link('q', '/tmp')}M 160000 ${'1'.repeat(40)} m\n`;
  await repository.fastImport(`${commit}${files}${links}\n`);
  const destination = await open();
  await write(destination, makeObject('p/1.jsonl', 'object'));
  t.equal(await repository.git('ls-tree', '--format=%(objectmode)', 'main', 'p/1.jsonl'), '100644');
  t.equal(await repository.show('main', 'p/1.jsonl'), 'object');
  await t.rejects(write(destination, makeObject('q/1.jsonl', 'x')), /q is in the way/);
  t.equal(await repository.git('cat-file', '-e', 'main:.gitattributes'), '');
  await repository.fastImport(
    `${commit}from refs/heads/main^0\nM 100644 inline .gitmodules\n${data(modules)}\n`,
  );
  await write(destination, makeObject('p/2.jsonl', 'object')).catch((error: Error) => {
    t.match(error, { name: 'DestinationError', message: /gitmodules/ });
  });
  t.notOk(existsSync(bait));
});

t.test('a large object is streamed, and the local repository stays small', async (t) => {
  const { repository, open } = await setUp(t);
  const destination = await open({}, { limits: { maxRepositoryBytes: 1_000_000 } });
  for (const n of [1, 2]) {
    const content = Buffer.alloc(5_000_000, `${n} and some text that compresses\n`);
    const chunks = (start: number) => content.subarray(start, start + 65_536);
    const read = () => Readable.from(Array.from({ length: 77 }, (_, i) => chunks(i * 65_536)));
    await write(destination, { ...makeObject(`p/${n}.jsonl`, content), read });
    t.equal(await repository.git('cat-file', '-s', `main:p/${n}.jsonl`), '5000000');
  }
  t.equal((await repository.subjects('main')).length, 2);
});

t.test('the probe is committed once, and checks each time that the token may write', async (t) => {
  const { repository, open } = await setUp(t);
  const destination = await open({ prefix: 'a/b' });
  await destination.probe(signal);
  await destination.probe(signal);
  t.strictSame(await repository.subjects('main'), [`Add a/b/${EXPORT_ID}/probe`]);
  const readOnly = await open({ prefix: 'a/b', token: READ_ONLY_TOKEN });
  await t.rejects(readOnly.probe(signal), {
    name: 'DestinationError',
    message: /may not write \(HTTP 403\)/,
  });
  const elsewhere = await open({ token: READ_ONLY_TOKEN });
  await t.rejects(elsewhere.probe(signal), {
    name: 'DestinationError',
    message: /may not write \(HTTP 403\)/,
  });
});

t.test('a name that is no plain path is rejected', async (t) => {
  const { repository, open } = await setUp(t);
  const destination = await open();
  for (const name of [
    '',
    '/a',
    'a/',
    'a//b',
    '../a',
    'a/../b',
    '.git/config',
    'a/.git/hooks/x',
    'a b',
    'a\nb',
    '"a"',
  ])
    await t.rejects(write(destination, makeObject(name, 'x')), { name: 'DestinationError' }, name);
  t.strictSame(await repository.subjects('main'), []);
  for (const revision of [1, 2])
    t.strictSame(await write(destination, makeObject('-a/--b', 'dashes', revision)), WRITTEN);
  t.equal(await repository.show('main', '-a/--b'), 'dashes');
});
