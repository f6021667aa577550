import fc from 'fast-check';
import t from 'tap';
import { fromHex, toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { createSet } from '../../../src/proof/set/create-set.js';
import { checkEntry, entryLeaf, MAX_ENTRIES } from '../../../src/proof/set/entry.js';
import { headDigest, headText, readHead } from '../../../src/proof/set/head.js';
import { comparePaths } from '../../../src/proof/set/path.js';
import { readSet, type SetItem } from '../../../src/proof/set/read-set.js';
import { proveMember, readSetProof, redactSet, type SetProofJson } from '../../../src/proof/set/set-proof.js';
import { verifyMember, verifySet } from '../../../src/proof/set/verify-set.js';
import type { Check } from '../../../src/proof/verify/report.js';
import {
  entryOf,
  errorOf,
  NOT_BEFORE,
  pathArbitrary,
  pathsArbitrary,
  piecesOf,
  readText,
  recompute,
  sorted,
  textOf,
  thrownBy,
} from './set-sample.js';

const isPassed = (checks: readonly Check[]) => checks.every(({ status }) => status === 'passed');

async function joined(texts: AsyncIterable<string>): Promise<string> {
  let all = '';
  for await (const text of texts) all += text;
  return all;
}

t.test('the bytes of entry, head and file are those of the format', async (t) => {
  const entry = { bytes: 3, path: 'a/"é"\n', salt: '0'.repeat(32), sha256: 'f'.repeat(64) };
  const set = createSet();
  const first = set.add(entry);
  const end = set.end(NOT_BEFORE);
  const line = `{"bytes":3,"path":"a/\\"é\\"\\n","salt":"${entry.salt}","sha256":"${entry.sha256}"}`;
  const type = 'application/vnd.attestation-service.set';
  const before = `"not_before":{"origin":"live.log.example","root_hash":"${NOT_BEFORE.rootHash}","tree_size":8421}`;
  const root = toHex(entryLeaf(entry));
  const head = `{"entries":1,"media_type":"${type}-head.v1+json",${before},"root":"${root}"}`;
  t.equal(first + end.text, `{"media_type":"${type}.v1+json","entries":[\n${line}\n],"head":${head}}\n`);
  t.equal(end.headText, head);
  t.strictSame(recompute(first + end.text), { root, headSha256: end.headSha256 });
  t.equal(headDigest(head), end.headSha256);
});

t.test('every set is read as it was written, in any pieces, and has the root of the recursion', async (t) => {
  await fc.assert(
    fc.asyncProperty(pathsArbitrary(300), fc.integer({ min: 1, max: 5000 }), async (paths, length) => {
      const text = textOf(paths);
      const set = readSet(piecesOf(text, length));
      const items: SetItem[] = [];
      for await (const item of set.items) items.push(item);
      const { head, headSha256, withheld, ignored } = await set.finish();
      const entries = items.map(({ entry }) => entry);
      t.strictSame(entries, sorted(paths).map(entryOf));
      t.strictSame(entries, JSON.parse(text).entries);
      t.strictSame({ root: head.root, headSha256 }, recompute(text));
      t.strictSame([head.entries, withheld, ignored.length], [paths.length, 0, 0]);
    }),
    { numRuns: 25 },
  );
});

t.test('every member proves, and no changed entry, index or proof does', async (t) => {
  const change = fc.constantFrom('bytes', 'path', 'salt', 'sha256', 'index', 'proof', 'root', 'entries');
  await fc.assert(
    fc.asyncProperty(pathsArbitrary(300), fc.nat(), change, async (paths, seed, what) => {
      const text = textOf(paths, NOT_BEFORE);
      const { headSha256 } = recompute(text);
      const path = paths[seed % paths.length]!;
      const { sha256, bytes } = entryOf(path);
      const json = await proveMember(piecesOf(text), path);
      const verify = (proof: unknown) =>
        verifyMember(readSetProof(proof), headSha256, { sha256, bytes, path });
      const good = verify(JSON.stringify(json));
      t.ok(isPassed(good.checks), path);
      t.strictSame(good.set?.head.notBefore, NOT_BEFORE);
      t.strictSame(good.set?.member, { entry: entryOf(path), index: sorted(paths).indexOf(path) });
      const forged = structuredClone(json) as unknown as Record<string, never>;
      Object.assign(forged, forge(json, what));
      t.notOk(isPassed(verify(forged).checks), what);
    }),
    { numRuns: 60 },
  );
});

/** A change to a proof that makes it one of something else. */
function forge(json: SetProofJson, what: string): object {
  const { entry, head, index, inclusion_proof: hashes } = json;
  const flip = (hex: string) => (hex.startsWith('0') ? '1' : '0') + hex.slice(1);
  switch (what) {
    case 'bytes':
      return { entry: { ...entry, bytes: entry.bytes + 1 } };
    case 'path':
      return { entry: { ...entry, path: `${entry.path}x` } };
    case 'salt':
      return { entry: { ...entry, salt: flip(entry.salt) } };
    case 'sha256':
      return { entry: { ...entry, sha256: flip(entry.sha256) } };
    case 'index':
      return { index: index === 0 ? 1 : index - 1 };
    case 'proof':
      return { inclusion_proof: hashes.length === 0 ? [`${'A'.repeat(43)}=`] : hashes.slice(1) };
    case 'root':
      return { head: { ...head, root: flip(head.root) } };
    default:
      return { head: { ...head, entries: head.entries + 1 } };
  }
}

t.test('every redaction recomputes, and proves what it shows', async (t) => {
  await fc.assert(
    fc.asyncProperty(pathsArbitrary(300), fc.func(fc.boolean()), async (paths, keep) => {
      const text = textOf(paths, NOT_BEFORE);
      const redacted = await joined(redactSet(piecesOf(text), keep));
      const kept = sorted(paths).filter((path) => keep(path));
      const { withheld, ...read } = await readText(redacted);
      const { withheld: _, ...before } = await readText(text);
      t.strictSame(read, before);
      t.strictSame({ root: read.head.root, headSha256: read.headSha256 }, recompute(redacted));
      t.equal(withheld, paths.length - kept.length);
      for (const { salt, path } of paths.filter((path) => !keep(path)).map(entryOf)) {
        t.notOk(redacted.includes(salt));
        t.equal((await errorOf(proveMember(piecesOf(redacted), path))).code, 'set.member');
      }
      const [path] = kept;
      if (path === undefined) return;
      const fromRedacted = await proveMember(piecesOf(redacted), path);
      t.strictSame(fromRedacted, await proveMember(piecesOf(text), path));
      const again = await joined(redactSet(piecesOf(redacted), () => true));
      t.equal(again, redacted, 'what is withheld stays so');
    }),
    { numRuns: 25 },
  );
});

t.test('paths are in the order of their bytes', async (t) => {
  const paths = fc.oneof(pathArbitrary, fc.string({ unit: 'grapheme' }));
  // Their characters would not do as the names of assertions.
  const order = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));
  fc.assert(fc.property(paths, paths, (a, b) => Math.sign(comparePaths(a, b)) === order(a, b)));
  t.ok(comparePaths('\uffee', '\u{1f600}') < 0);
  t.ok('\uffee' > '\u{1f600}', 'which is not the order of JavaScript');
});

t.test('the builder takes good entries in order, and is not changed by a bad one', async (t) => {
  const set = createSet();
  const good = entryOf('b');
  const text = set.add(good);
  const cases: [what: string, says: RegExp, change: object][] = [
    ['the same path', /\(b\) occurs twice/, {}],
    ['an earlier path', /\(a\) is not sorted: it is after b/, { path: 'a' }],
    ['an empty path', /is empty/, { path: '' }],
    ['an absolute path', /\/c, which is absolute/, { path: '/c' }],
    ['a path above', /has a segment that is empty, \. or \.\./, { path: 'c/../../d' }],
    ['a path to itself', /has a segment that is empty, \. or \.\./, { path: 'c/./d' }],
    ['an empty segment', /has a segment that is empty, \. or \.\./, { path: 'c//d' }],
    ['a folder', /ends with a slash/, { path: 'c/' }],
    ['a backslash', /has a backslash/, { path: 'c\\d' }],
    ['a NUL', /has a NUL/, { path: 'c\0' }],
    ['half a surrogate pair', /has half a surrogate pair/, { path: 'c\ud83d' }],
    ['a path of 4,097 bytes', /is longer than 4096 bytes/, { path: `c${'é'.repeat(2048)}` }],
    ['no path', /has no path/, { path: undefined }],
    ['a negative length', /has no length in bytes/, { path: 'c', bytes: -1 }],
    ['a length beyond 2^53', /has no length in bytes/, { path: 'c', bytes: 2 ** 53 }],
    ['a salt of 15 bytes', /has no salt/, { path: 'c', salt: '0'.repeat(30) }],
    ['a digest in capitals', /has no SHA-256/, { path: 'c', sha256: 'A'.repeat(64) }],
  ];
  for (const [what, says, change] of cases) {
    const error = await thrownBy(() => set.add({ ...good, ...change }));
    t.match(error.message, says, what);
    t.equal(error.code, 'set.shape', what);
  }
  const longest = `c${'\u0001'.repeat(4095)}`;
  checkEntry(entryOf(longest));
  const all = text + set.add(entryOf(longest)) + set.end().text;
  t.equal((await readText(all)).head.entries, 2);
  t.strictSame(recompute(all).root, (await readText(all)).head.root);
});

t.test('a set has 1 to 1,000,000 entries', async (t) => {
  t.match((await thrownBy(() => createSet().end())).message, /no entries/);
  const leaf = fromHex('00'.repeat(32));
  const set = createSet();
  for (let i = 0; i < MAX_ENTRIES; i++) set.withhold(leaf);
  t.match((await thrownBy(() => set.withhold(leaf))).message, /more than 1000000 entries/);
  t.match((await thrownBy(() => set.add(entryOf('a')))).message, /more than 1000000 entries/);
  t.equal(set.end().head.entries, MAX_ENTRIES);
  const tooMany = { entries: MAX_ENTRIES + 1, root: '0'.repeat(64) };
  t.match((await thrownBy(() => headText(tooMany))).message, /number of entries from 1 to 1000000/);
});

t.test('not_before is a checkpoint of a log that is not empty', async (t) => {
  const set = createSet();
  set.add(entryOf('a'));
  for (const change of [{ treeSize: 0 }, { rootHash: 'AB'.repeat(32) }, { origin: 'a log' }]) {
    const error = await thrownBy(() => set.end({ ...NOT_BEFORE, ...change }));
    t.match(error.message, /not_before of the head has no origin, root_hash or tree_size/);
  }
  const { head, headText: text, headSha256 } = set.end(NOT_BEFORE);
  t.strictSame(readHead(JSON.parse(text)), { head, headSha256 });
});

t.test('a set verifies as the one that was attested, and a file as one of it', async (t) => {
  const text = textOf(['a', 'b/c', 'b/d']);
  const { headSha256 } = recompute(text);
  const bytes = utf8(text);
  const { sha256, bytes: length } = entryOf('b/c');
  const codes = async (...[attested, expected]: [string, object?]) => {
    const { checks, set } = await verifySet([bytes], attested, expected);
    return [checks.map(({ code, status }) => `${code} ${status}`).slice(1), set?.member?.entry.path];
  };
  const [head, inclusion] = ['set.head passed', 'set.inclusion passed'];
  t.strictSame(await codes(headSha256), [[head, inclusion, 'set.member not_checked'], undefined]);
  t.strictSame(await codes(headSha256, { sha256 }), [[head, inclusion, 'set.member passed'], 'b/c']);
  const full = { sha256, bytes: length, path: 'b/c' };
  t.strictSame(await codes(headSha256, full), [[head, inclusion, 'set.member passed'], 'b/c']);
  for (const wrong of [{ path: 'b/d' }, { bytes: 7 }]) {
    t.strictSame((await codes(headSha256, { ...full, ...wrong }))[0], [head, inclusion, 'set.member failed']);
  }
  for (const absent of [{ sha256: '0'.repeat(64) }, { ...full, path: 'b' }]) {
    t.strictSame(await codes(headSha256, absent), [[head, inclusion, 'set.member failed'], undefined]);
  }
  t.strictSame((await codes('0'.repeat(64)))[0], ['set.head failed', inclusion, 'set.member not_checked']);
  const redacted = utf8(await joined(redactSet([bytes], (path) => path === 'a')));
  const { checks } = await verifySet([redacted], headSha256, { sha256 });
  t.match(checks.at(-1), {
    code: 'set.member',
    status: 'not_checked',
    blocking: true,
    message: /2 withheld/,
  });
});
