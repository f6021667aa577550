/** Files of checksums: what coreutils and BSD write is read back, and what they do not write is an error with its line. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PackageURL } from 'packageurl-js';
import t from 'tap';
import { parseChecksums } from '../../../src/cli/submit/checksums.js';
import { defaultMetadata, recordedName } from '../../../src/cli/submit/recorded-name.js';
import { findPurlProblem } from '../../../src/server/schema/purl.js';

const HEX = 'ab'.repeat(32);
const parse = (...texts: string[]) =>
  parseChecksums(
    'SUMS',
    texts.map((text, i) => ({ text, number: i + 1 })),
  );

t.test('both formats are read, with marks, escapes and comments', async (t) => {
  const cases: [line: string, name: string][] = [
    [`${HEX}  a.txt`, 'a.txt'],
    [`${HEX} *a.txt`, 'a.txt'],
    [`${HEX.toUpperCase()}  a b  c`, 'a b  c'],
    [`${HEX}   leading`, ' leading'],
    [`${HEX}  a\\b`, 'a\\b'],
    [`\\${HEX}  a\\\\b\\nc\\rd`, 'a\\b\nc\rd'],
    [`SHA256 (a.txt) = ${HEX}`, 'a.txt'],
    [`SHA256 (a) = b) = ${HEX}`, 'a) = b'],
    [`\\SHA256 (a\\nb) = ${HEX}`, 'a\nb'],
    [`${HEX}  windows.txt\r`, 'windows.txt'],
    [`${HEX}  é/\u{1f600}`, 'é/\u{1f600}'],
    [`${HEX}  -`, '-'],
  ];
  for (const [line, name] of cases) t.same(parse(line), [{ name, sha256: HEX }], line);
  t.same(parse('# of the release', '\r', `${HEX}  a`), [{ name: 'a', sha256: HEX }]);
});

t.test('what is no SHA-256 of a file names the line and what is wrong', async (t) => {
  const cases: [line: string, problem: RegExp][] = [
    ['hello', /line 1 is not a checksum/],
    [HEX, /line 1 is not a checksum/],
    [`${HEX} a`, /line 1 is not a checksum/],
    [`${HEX}  `, /line 1 is not a checksum/],
    [`${'ab'.repeat(64)}  a`, /line 1 has 128 hex digits: a SHA-256 has 64/],
    [`${HEX.slice(1)}  a`, /line 1 has 63 hex digits/],
    [`MD5 (a) = ${'ab'.repeat(16)}`, /line 1 has a checksum by MD5: only SHA256/],
    [`SHA256 (a) = ${HEX.slice(2)}`, /line 1 has 62 hex digits/],
    [`SHA256 () = ${HEX}`, /line 1 is not a checksum/],
    [`\\${HEX}  a\\x`, /line 1 has a backslash that escapes nothing/],
    [`\\${HEX}  a\\`, /line 1 has a backslash that escapes nothing/],
    [`${HEX}  a/..`, /line 1 names a folder/],
    [`${HEX}  a/`, /line 1 names a folder/],
    [`${HEX}  .`, /line 1 names a folder/],
  ];
  for (const [line, problem] of cases) t.throws(() => parse(line), { message: problem }, line);
  t.throws(() => parse(`${HEX}  a`, 'b'), { name: 'UsageError', message: /^SUMS: line 2 / });
});

t.test('what sha256sum writes of odd names is read back', async (t) => {
  const dir = t.testdir();
  const names = ['a b', 'line\nbreak', 'back\\slash', '*star', ') = x', '-dash', 'é#?@%'];
  for (const name of names) writeFileSync(join(dir, name), name);
  for (const flags of [[], ['--tag'], ['--binary']]) {
    const text = execFileSync('sha256sum', [...flags, '--', ...names], { cwd: dir, encoding: 'utf8' });
    const expected = names.map((name) => ({
      name,
      sha256: createHash('sha256').update(name).digest('hex'),
    }));
    t.same(parse(...text.trimEnd().split('\n')), expected, flags.join());
  }
});

t.test('a recorded name is inside the folder, and its package URL says it', async (t) => {
  const cases: [path: string, name: string][] = [
    ['a/result.json', 'a/result.json'],
    ['./a//b/../c', 'a/c'],
    ['../secret/x', 'x'],
    ['a/../../x/y', 'y'],
    ['/home/me/build/x', 'x'],
    ['/srv/dir/x', 'x'],
    ['..a/b', '..a/b'],
    ['.', ''],
    ['a b%c/é#d?/@e:f+g', 'a b%c/é#d?/@e:f+g'],
    ["(it's)!*~/ n ", "(it's)!*~/ n "],
    ['a\nb\\c', 'a\nb\\c'],
  ];
  for (const [path, name] of cases) {
    t.equal(recordedName(path, '/srv/dir'), name, path);
    if (name === '') continue;
    const { purl } = defaultMetadata(name, HEX) as { purl: string };
    t.equal(findPurlProblem(purl), undefined, purl);
    t.match(purl, /^[A-Za-z0-9._~/%:?=-]+$/);
    const read = PackageURL.fromString(purl);
    const whole = read.namespace === undefined ? read.name : `${read.namespace}/${read.name}`;
    // The library trims names.
    t.equal(whole, name.trimEnd().replace('/ n', '/n'), purl);
    t.equal(read.qualifiers?.checksum, `sha256:${HEX}`);
  }
});
