import t from 'tap';
import { entryText, readEntry } from '../../../src/proof/set/entry.js';
import { headText } from '../../../src/proof/set/head.js';
import { MAX_LINE_BYTES, readLines } from '../../../src/proof/set/lines.js';
import { findPathProblem, MAX_PATH_BYTES, printablePath } from '../../../src/proof/set/path.js';
import { readSet } from '../../../src/proof/set/read-set.js';
import { verifySet } from '../../../src/proof/set/verify-set.js';
import { a, b, c, first, last, of, text, withEntry, withHead, withPath } from './changed-file.js';
import { entryOf, errorOf, piecesOf, readText, recompute } from './set-sample.js';

t.test('a set of a form that is not known could not be checked', async (t) => {
  const v2 = (file: string) => file.replace('.v1+json', '.v2+json');
  const proto = '{"__proto__":{"a":1},';
  const cases: [what: string, says: RegExp, file: string][] = [
    ['another version', /line 1 has a media type of sets that this version does not know/, v2(text)],
    ['a member of an entry', /line 3 is an entry with members/, withEntry(b.replace('{', '{"mode":420,'))],
    ['__proto__ of an entry', /line 3 is an entry with members/, withEntry(b.replace('{', proto))],
    [
      'a member of a withheld entry',
      /line 3 is an entry with members/,
      withEntry(`{"leaf":"${'0'.repeat(64)}","path":"b"},`),
    ],
    ['another version of the head', /the head of the set has a media type/, of(first, a, b, c, v2(last))],
    ['a member of the head', /the head of the set has members/, withHead({ of_tomorrow: 1 })],
    [
      '__proto__ of the head',
      /the head of the set has members/,
      of(first, a, b, c, last.replace('"head":{', `"head":${proto}`)),
    ],
    [
      'a member of not_before',
      /the head of the set has members/,
      withHead({ not_before: { ...JSON.parse(text).head.not_before, more: 1 } }),
    ],
  ];
  for (const [what, says, file] of cases) {
    const error = await errorOf(readText(file));
    t.match([error.code, error.message], ['set.shape', says], what);
    t.equal(error.details.isUnsupported, true, what);
    const attested = error.details.headSha256 ?? recompute(text).headSha256;
    const { checks } = await verifySet(piecesOf(file), attested);
    t.match(checks, [{ code: 'set.shape', status: 'not_checked', blocking: true }], what);
    if (error.details.headSha256 === undefined) continue;
    t.equal(attested, recompute(file).headSha256, what);
    const forged = await verifySet(piecesOf(file), recompute(text).headSha256);
    t.match(forged.checks, [{ code: 'set.head', status: 'failed' }], what);
  }
  t.notOk('a' in {});
});

t.test(
  'a member of the file that is not known is ignored, with a remark; the head may come first',
  async (t) => {
    const { headSha256 } = recompute(text);
    const more = text
      .replace('"entries"', '"__proto__":{"a":1},"of~tomorrow":[[1]],"entries"')
      .replace(/}\n$/, ',"z":1}\n');
    t.strictSame((await readText(more)).ignored, ['/__proto__', '/of~0tomorrow', '/z']);
    const { checks } = await verifySet(piecesOf(more), headSha256);
    t.equal(
      checks.filter(({ code, status }) => code === 'set.unknown_member' && status === 'not_checked').length,
      3,
    );
    t.notOk(checks.some(({ status, blocking }) => status === 'failed' || blocking));
    const early = of(first.replace('"entries"', `"head":${last.slice(9, -1)},"entries"`), a, b, c, ']}');
    t.strictSame(await readText(early), await readText(text));
    t.strictSame(JSON.parse(early).entries, JSON.parse(text).entries);
    t.match(
      (await errorOf(readText(more.replace('"z":1', '"__proto__":1')))).message,
      /a member is in it twice/,
    );
  },
);

t.test('lines are as long as the longest entry, in any pieces', async (t) => {
  const longest = entryText(entryOf('\u0001'.repeat(MAX_PATH_BYTES)));
  t.ok(longest.length < MAX_LINE_BYTES / 2);
  const whole = 'a'.repeat(MAX_LINE_BYTES);
  for (const length of [1, 7, MAX_LINE_BYTES, MAX_LINE_BYTES + 1, 3 * MAX_LINE_BYTES]) {
    const found: number[] = [];
    for await (const line of readLines(piecesOf(`${whole}\n\n${whole}`, length))) found.push(line.length);
    t.strictSame(found, [MAX_LINE_BYTES, 0, MAX_LINE_BYTES], `${length}`);
    t.match((await errorOf(readSet(piecesOf(`${whole}a\n`, length)).finish())).message, /line 1 is longer/);
  }
});

t.test('a path is printed without what could spoof a terminal', async (t) => {
  t.equal(printablePath('a\u001b[2J\u202eb'), 'a\ufffd[2J\ufffdb');
  t.equal(printablePath('é'.repeat(300)), `${'é'.repeat(256)}…`);
  t.notMatch(printablePath(`${'a'.repeat(255)}\u{1f600}`), /\p{Surrogate}/u);
  t.equal(findPathProblem('\u001b[2J'), undefined, 'but it is a name that a file can have');
  const error = await errorOf(readText(withPath('"\\u001b[2J/"')));
  t.match([error.message, error.details.path], [/line 3 has the path \ufffd\[2J\//, '\u001b[2J/']);
});

t.test('head and entry are read back as they are written', async (t) => {
  const { head } = await readText(text);
  t.equal(headText(head), last.slice(9, -1));
  t.strictSame(readEntry(JSON.parse(c)), { entry: entryOf('c/d'), isKnown: true });
});
