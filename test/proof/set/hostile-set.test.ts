import t from 'tap';
import { verifySet } from '../../../src/proof/set/verify-set.js';
import { a, b, c, deep, first, last, of, text, withEntry, withHead, withPath } from './changed-file.js';
import { errorOf, NOT_BEFORE, piecesOf, readText, recompute, textOf } from './set-sample.js';

t.test('a hostile set file is rejected with its line, quickly', async (t) => {
  const other = textOf(['a', 'b', 'e'], NOT_BEFORE).split('\n');
  const cases: [what: string, code: string, says: RegExp, file: string | Uint8Array][] = [
    ['nothing', 'set.shape', /cut off: it ends after line 0/, ''],
    ['a line of 1 MB', 'set.shape', /line 3 is longer than 64 KiB/, withEntry('a'.repeat(1_000_000))],
    ['a line of 1 MB at the end', 'set.shape', /line 5 is longer/, of(first, a, b, c, 'a'.repeat(1_000_000))],
    ['a depth of 10,000', 'set.shape', /line 3 .*no path/, withEntry(`{"leef":${deep(10_000)}},`)],
    [
      'depth in an entry',
      'set.shape',
      /line 3 is too large or too deep/,
      withEntry(b.replace('{', `{"a":${deep(10_000)},`)),
    ],
    [
      'depth in the head',
      'set.shape',
      /line 5 is too large or too deep/,
      of(first, a, b, c, last.replace('{', `{"a":${deep(10_000)},`)),
    ],
    [
      'depth before the entries',
      'set.shape',
      /line 1 is too large or too deep/,
      text.replace('{', `{"a":${deep(10_000)},`),
    ],
    ['a byte order mark', 'set.shape', /line 1 begins with a byte order mark/, `\ufeff${text}`],
    ['a byte order mark in a line', 'set.shape', /line 3 is not canonical/, withEntry(`\ufeff${b}`)],
    ['CR LF', 'set.shape', /line 1 ends with CR LF/, text.replaceAll('\n', '\r\n')],
    ['a NUL', 'set.shape', /line 3 is not JSON/, withPath('"b\0"')],
    ['an escaped NUL', 'set.shape', /line 3 .*has a NUL/, withPath('"b\\u0000"')],
    ['bytes that are no UTF-8', 'set.shape', /line 3 is not text in UTF-8/, noUtf8()],
    ['a lone surrogate', 'set.shape', /line 3 .*half a surrogate pair/, withPath('"b\\ud83d"')],
    ['an escape that is not needed', 'set.shape', /line 3 is not canonical JSON/, withPath('"\\u0062"')],
    ['a path above', 'set.shape', /line 3 has the path \.\.\/b, which has a segment/, withPath('"../b"')],
    ['an absolute path', 'set.shape', /line 3 has the path \/b, which is absolute/, withPath('"/b"')],
    ['a folder', 'set.shape', /line 3 has the path b\/, which ends with a slash/, withPath('"b/"')],
    ['a backslash', 'set.shape', /line 3 has the path b\\c, which has a backslash/, withPath('"b\\\\c"')],
    ['a path that is no text', 'set.shape', /line 3 has no path/, withPath('7')],
    ['a path twice', 'set.shape', /line 3 \(a\) occurs twice/, withEntry(a)],
    [
      'entries that were moved',
      'set.shape',
      /line 3 \(a\) is not sorted: it is after b/,
      of(first, b, a, c, last),
    ],
    ['a member twice', 'set.shape', /line 3 has a member twice/, withEntry(b.replace('{', '{"bytes":1,'))],
    [
      'a length of -0',
      'set.shape',
      /line 3 is not canonical/,
      withEntry(b.replace(/"bytes":\d+/, '"bytes":-0')),
    ],
    [
      'a length of 1e3',
      'set.shape',
      /line 3 is not canonical/,
      withEntry(b.replace(/"bytes":\d+/, '"bytes":1e3')),
    ],
    ['a leaf of 31 bytes', 'set.shape', /line 3 has a leaf/, withEntry(`{"leaf":"${'0'.repeat(62)}"},`)],
    ['an array in the place of an entry', 'set.shape', /line 3 is not the JSON object/, withEntry('[],')],
    ['a number in the place of an entry', 'set.shape', /line 3 is not the JSON object/, withEntry('1,')],
    ['an empty line', 'set.shape', /line 3 is empty/, withEntry('')],
    ['two entries in a line', 'set.shape', /line 2 is not JSON/, of(first, a + b, c, last)],
    [
      'an entry without a comma',
      'set.shape',
      /line 3 follows an entry without a comma/,
      of(first, a.slice(0, -1), b, c, last),
    ],
    [
      'a comma at the end',
      'set.shape',
      /line 5 ends the entries after a comma/,
      of(first, a, b, `${c},`, last),
    ],
    ['no entries', 'set.shape', /the set has no entries/, of(first, last)],
    ['text after the end', 'set.shape', /line 6 is after the end/, `${text}x`],
    ['a set after the end', 'set.shape', /line 6 is after the end/, text + text],
    ['all in one line', 'set.shape', /line 1 is not that of a set file/, JSON.stringify(JSON.parse(text))],
    [
      'an indented file',
      'set.shape',
      /line 1 is not that of a set file: .*one entry a line/,
      JSON.stringify(JSON.parse(text), null, 2),
    ],
    ['entries in a member', 'set.shape', /line 1 is not JSON/, text.replace('"entries"', '"a":{"entries"')],
    [
      'entries that only end so',
      'set.shape',
      /line 1 is not that of a set/,
      text.replace('"entries"', '"a\\"entries"'),
    ],
    ['no media type', 'set.shape', /line 1 has no media_type/, of('{"entries":[', a, b, c, last)],
    [
      'a media type at the end',
      'set.shape',
      /line 5 has media_type after/,
      text.replace(',"head"', ',"media_type":"a","head"'),
    ],
    ['no head', 'set.shape', /the head is missing/, of(first, a, b, c, ']}')],
    [
      'two heads',
      'set.shape',
      /the head is in it twice/,
      text.replace('"entries"', `"head":${last.slice(9, -1)},"entries"`),
    ],
    [
      'a head twice in a line',
      'set.shape',
      /line 5 has a member twice/,
      text.replace(/}\n$/, ',"head":1}\n'),
    ],
    [
      'a head that is no object',
      'set.shape',
      /the head is no plain JSON object/,
      of(first, a, b, c, '],"head":7}'),
    ],
    ['a head without a root', 'set.shape', /the head has no root/, withHead({}, ['root'])],
    ['a head without a media type', 'set.shape', /the head has no media_type/, withHead({}, ['media_type'])],
    ['a head of half an entry', 'set.shape', /the head has no number of entries/, withHead({ entries: 0.5 })],
    [
      'a head with a lone surrogate',
      'set.shape',
      /the head is not JSON that can be hashed/,
      withHead({ a: '\ud800' }),
    ],
    ['a checkpoint without a size', 'set.shape', /not_before/, withHead({ not_before: { origin: 'a' } })],
    ['a head of one entry more', 'set.inclusion', /it is of 4, and there are 3/, withHead({ entries: 4 })],
    ['the head of another set', 'set.inclusion', /they have another root/, of(first, a, b, c, other[4]!)],
    [
      'a changed entry',
      'set.inclusion',
      /they have another root/,
      withEntry(b.replace('"bytes":', '"bytes":1')),
    ],
    [
      'a withheld entry in the place of another',
      'set.inclusion',
      /another root/,
      withEntry(`{"leaf":"${'0'.repeat(64)}"},`),
    ],
    ['an entry left out', 'set.inclusion', /it is of 3, and there are 2/, of(first, a, c, last)],
  ];
  for (const [what, code, says, file] of cases) {
    const error = await errorOf(readText(file));
    t.equal(error.code, code, what);
    t.match(error.message, says, what);
    t.notOk(error.details.isUnsupported, what);
    const at = /^line (\d+)/.exec(error.message)?.[1];
    if (at !== undefined) t.equal(error.details.line, Number(at), what);
    const { checks } = await verifySet(piecesOf(file), recompute(text).headSha256);
    t.match(checks, [{ code, status: 'failed' }], what);
  }
});

function noUtf8(): Uint8Array {
  const bytes = new Uint8Array(Buffer.from(text));
  return bytes.with(text.indexOf('"path":"b"') + 8, 0xff);
}

t.test('a set file cut at any byte is rejected, but for its last newline', async (t) => {
  for (let end = 0; end < text.length - 1; end++) {
    const error = await errorOf(readText(text.slice(0, end)));
    const says = end > 0 && end < first.length ? /line 1 is not that of a set file/ : /cut off/;
    t.match([error.code, error.message], ['set.shape', says], text.slice(0, end));
  }
  t.strictSame(await readText(text.slice(0, -1)), await readText(text));
});

t.test('a set file with any byte flipped is rejected, or could be one of another version', async (t) => {
  const bytes = new Uint8Array(Buffer.from(text));
  const { headSha256 } = recompute(text);
  for (let at = 0; at < bytes.length - 1; at++) {
    const flipped = bytes.with(at, bytes[at]! ^ (1 << ((at * 5) % 8)));
    const { checks } = await verifySet(piecesOf(flipped), headSha256);
    t.ok(
      checks.some(({ status, blocking }) => status === 'failed' || blocking),
      `byte ${at}`,
    );
  }
});
