/** Reports that are cut off, wrongly encoded, hostile, or no reports. */
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import t, { type Test } from 'tap';
import { PRINT_MEMORY } from '../../../support/calling/print-memory.js';
import { runProcess } from '../../../support/calling/run-cli.js';
import { isLong, someOf } from '../../../support/long.js';
import { serveResults } from '../serving.js';
import { resultOfText } from './reading.js';

const MI = 1024 * 1024;
/** The command takes 113 MiB for a small report. */
const MOST_MIB = 170;
const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le');
const latin1 = (text: string) => Buffer.from(text, 'latin1');

const MALFORMED: [name: string, content: string | Uint8Array, said: RegExp][] = [
  ['empty', '', /line 1: is empty: not a JUnit report/],
  ['white space', '\n\n', /line 3: is empty/],
  ['HTML', '<html>\n<body></body></html>', /line 1: the root element is <html>, not <testsuites>/],
  ['HTML with a document type', '<!DOCTYPE html><html></html>', /line 1: has a document type/],
  ['another format', '<?xml version="1.0"?>\n<test-run/>', /line 2: the root element is <test-run>/],
  ['JSON', '{"tests": []}', /line 1: not well-formed XML/],
  ['a PNG', Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a), /is not valid UTF-8/],
  [
    'an entity bomb',
    '<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;&b;">]>\n<testsuite name="&c;"/>',
    /line 2: has a document type/,
  ],
  [
    'an external entity',
    '<!DOCTYPE a SYSTEM "file:///etc/passwd"><testsuite/>',
    /line 1: has a document type/,
  ],
  ['cut off in a tag', '<testsuite>\n<testcase name="a"/>\n<testcase na', /line 3: ends within <testsuite>/],
  ['cut off in a test', '<testsuite>\n<testcase name="a">', /line 2: ends within <testcase>/],
  ['cut off in CDATA', '<testsuite><system-out><![CDATA[ a', /line 1: ends within <system-out>/],
  ['wrongly nested', '<testsuite><testcase>\n</testsuite>', /line 2: .*Unexpected close tag/],
  ['two reports', '<testsuite></testsuite>\n<testsuite></testsuite>', /line 2: a second root element/],
  ['text after the end', '<testsuite></testsuite>\nno', /line 2: .*Text data outside of root node/],
  ['not UTF-8', latin1('<testsuite name="größe"/>'), /is not valid UTF-8: have it written as UTF-8/],
  [
    'an unknown encoding',
    '<?xml version="1.0" encoding="x-none"?><testsuite/>',
    /the encoding x-none, which/,
  ],
  [
    'half of UTF-16',
    utf16('<testsuite/>').subarray(0, 11),
    /is not valid UTF-16LE|ends within|not well-formed/,
  ],
  ['deep', '<testsuite>'.repeat(33), /elements are nested deeper than 32/],
  ['many attributes', `<testsuite ${range(257, (i) => `a${i}=""`).join(' ')}/>`, /more than 256 attributes/],
];

t.test('what is no complete report is an error with file and line', async (t) => {
  for (const [name, content, said] of MALFORMED) {
    const error = await resultOfText(t, content).then(
      () => new Error('was read'),
      (error: Error) => error,
    );
    t.equal(error.name, 'UsageError', name);
    t.match(error.message, /report\.xml/, name);
    t.match(error.message, said, name);
  }
});

t.test('every prefix of a report is an error', async (t) => {
  const whole =
    '<?xml version="1.0"?>\n<testsuite><testcase name="a"><failure>&lt;</failure></testcase></testsuite>';
  for (let length = 0; length < whole.length; length++) {
    await t.rejects(resultOfText(t, whole.slice(0, length)), { name: 'UsageError' }, String(length));
  }
  t.match(await resultOfText(t, whole), { failedTests: ['a'] });
});

t.test('encodings that are declared or marked are read', async (t) => {
  const report = (encoding: string) =>
    `<?xml version="1.0" encoding="${encoding}"?><testsuite><testcase name="größe €"/></testsuite>`;
  const bigEndian = Buffer.from(utf16(report('UTF-16'))).swap16();
  for (const content of [
    report('UTF-8'),
    `\ufeff${report('utf-8')}`,
    utf16(report('UTF-16')),
    utf16(report('UTF-16')).subarray(2),
    bigEndian,
    bigEndian.subarray(2),
    latin1(report('windows-1252').replace('€', '\x80')),
    // Converted by a tool that left the declaration.
    report('UTF-16'),
  ]) {
    t.same((await resultOfText(t, content)).passedTests, ['größe €']);
  }
});

t.test('what tools get wrong in text and names is read', async (t) => {
  const text =
    '<testsuite><testcase name="a\x1b[31mb\0"><system-out>\x1b[0m\0</system-out></testcase></testsuite>';
  t.same((await resultOfText(t, text)).passedTests, ['a\x1b[31mb\ufffd']);
  const referred = '<testsuite><testcase name="a&#27;b&lol;&#xD800;&amp;"/></testsuite>';
  t.same((await resultOfText(t, referred)).passedTests, ['a&#27;b&lol;&#xD800;&']);
});

/** Writes a report piece by piece. */
async function write(t: Test, pieces: Iterable<string>): Promise<string> {
  const file = join(t.testdir(), 'report.xml');
  await pipeline(Readable.from(pieces), createWriteStream(file));
  return file;
}

function range<T>(count: number, make: (i: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => make(i));
}

function* around(
  before: string,
  count: number,
  make: (i: number) => string,
  after: string,
): Generator<string> {
  yield before;
  for (let i = 0; i < count; i++) yield make(i);
  yield after;
}

const x = 'x'.repeat(MI);

/** Reports of `size` MiB, in pieces; whether they are read. */
const LARGE: [name: string, pieces: (size: number) => Iterable<string>, said: RegExp | undefined][] = [
  ['text', (n) => around('<testsuite><testcase name="a">', n, () => x, '</testcase></testsuite>'), undefined],
  ['CDATA', (n) => around('<testsuite><![CDATA[', n, () => x, ']]></testsuite>'), undefined],
  [
    'long names',
    (n) =>
      around('<testsuite>', 10 * n, (i) => `<testcase name="${i}${x.slice(0, 100_000)}"/>`, '</testsuite>'),
    undefined,
  ],
  ['an attribute', (n) => around('<testsuite name="', n, () => x, '"/>'), /Max buffer length exceeded/],
  [
    'a comment',
    (n) => around('<testsuite><!--', n, () => x, '--></testsuite>'),
    /Max buffer length exceeded/,
  ],
  ['a name', (n) => around('<', n, () => x, '/>'), /Max buffer length exceeded/],
  [
    'attributes of open elements',
    (n) => around('', Math.min(n, 31), () => `<testsuite name="${x.slice(0, 500_000)}">`, ''),
    /the attributes of open elements have more than 1 Mi characters/,
  ],
];

/** Submits a report by the program. Returns the most memory that it had, in MiB, and what it printed. */
async function submit(t: Test, file: string) {
  const { created, env } = await serveResults(t);
  const ended = await runProcess(['submit', '--junit', file], { ...env, ...PRINT_MEMORY });
  const { stderr, mib } = /^(?<stderr>.*?)(?<mib>\d+)\n$/s.exec(ended.stderr)?.groups ?? {};
  return { code: ended.code, stderr, mib: Number(mib) / 1024, metadata: created[0]?.metadata };
}

t.test('a report of 200 MB in one place takes bounded memory', async (t) => {
  for (const [name, pieces, said] of someOf(LARGE, 4)) {
    const { code, stderr, mib } = await submit(t, await write(t, pieces(isLong ? 200 : 20)));
    t.equal(code, said === undefined ? 0 : 2, name);
    if (said !== undefined) t.match(stderr, said, name);
    t.ok(mib > 30 && mib < MOST_MIB, `${name}: ${Math.round(mib)} MiB`);
  }
});

t.test('100,000 cases in 200 MB take bounded memory', async (t) => {
  const [cases, output] = isLong ? [100_000, 2_000] : [20_000, 500];
  const text = 'y'.repeat(output);
  const pieces = around(
    '<testsuites><testsuite name="s">',
    cases,
    (i) =>
      `<testcase classname="tests.m${i % 100}" name="t${i}"><system-out>${text}</system-out></testcase>\n`,
    '</testsuite></testsuites>',
  );
  const { code, mib, metadata } = await submit(t, await write(t, pieces));
  t.match({ code, metadata }, { code: 0, metadata: { result: 'PASSED', attest_counts: { passed: cases } } });
  const { attest_omitted: omitted, passedTests } = metadata as {
    attest_omitted: object;
    passedTests: string[];
  };
  t.same(omitted, { passedTests: cases - passedTests.length });
  t.ok(mib < MOST_MIB, `${Math.round(mib)} MiB`);
});

if (isLong) {
  t.test('more than 500,000 tests are an error', async (t) => {
    const pieces = around('<testsuite>', 500_001, (i) => `<testcase name="${i}"/>`, '</testsuite>');
    const { code, stderr, mib } = await submit(t, await write(t, pieces));
    t.match({ code, stderr }, { code: 2, stderr: /more than 500,000 tests/ });
    t.ok(mib < MOST_MIB, `${Math.round(mib)} MiB`);
  });
}
