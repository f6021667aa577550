/** Zip files that no evaluation wrote, or that were damaged. */
import { crc32 } from 'node:zlib';
import t, { type Test } from 'tap';
import { hashLog } from '../../../../src/cli/results/evaluation/hash-log.js';
import { readParts, recorded, writeLog } from './reading.js';
import { type Member, zipOf, zstdOf } from './zip-writer.js';

const HEADER: Member = {
  name: 'header.json',
  content: JSON.stringify({
    version: 2,
    status: 'success',
    eval: { task: 'a', model: 'b' },
    results: { scores: [] },
  }),
};

const SAMPLE: Member = { name: 'samples/1_epoch_1.json', content: '{"id":1,"epoch":1}' };

async function problemOf(t: Test, zip: Uint8Array): Promise<string> {
  const log = writeLog(t, 'log.eval', zip);
  const asked = { signal: new AbortController().signal, onBytes: () => {} };
  return hashLog(log, asked).then(
    () => 'none',
    (error: Error) => `${error.name}: ${error.message.replaceAll(log, 'LOG')}`,
  );
}

t.test('stored, deflated, zstd and zip64 members are read alike', async (t) => {
  const content = Buffer.from(SAMPLE.content);
  const zstd = { ...SAMPLE, method: 93, stored: zstdOf([content.subarray(0, 5), content.subarray(5)]) };
  const zips = [zipOf([HEADER, SAMPLE]), zipOf([HEADER, { ...SAMPLE, method: 8 }]), zipOf([HEADER, zstd])];
  zips.push(zipOf([HEADER, SAMPLE], { zip64: true }));
  for (const zip of zips) {
    const { parts } = await readParts(writeLog(t, 'log.eval', zip));
    t.strictSame(parts.get('samples/1_epoch_1.json'), content);
  }
});

t.test('names of samples are made paths of a set, each its own', async (t) => {
  const names = ['../../etc/passwd', '/abs', 'a\\b', 'a%2Fb', 'ü', '.', 'a//b', 'nul\0', ''];
  const members = names.map((name) => ({ ...SAMPLE, name: `samples/${name}.json` }));
  const { parts } = await readParts(writeLog(t, 'log.eval', zipOf([HEADER, ...members])));
  t.strictSame(
    [...parts.keys()].filter((path) => path.startsWith('samples/')),
    ['..%2F..%2Fetc%2Fpasswd', '%2Fabs', 'a%5Cb', 'a%252Fb', 'ü', '.', 'a%2F%2Fb', 'nul%00', ''].map(
      (name) => `samples/${name}.json`,
    ),
  );
});

t.test(
  'a zip file that is damaged or hostile has an error that names the member and the problem',
  async (t) => {
    const zip = zipOf([HEADER, SAMPLE]);
    const big = { name: 'samples/bomb.json', content: '', method: 8, bytes: 0xffffff00 };
    const repeated = Array.from({ length: 2000 }, () => ({ byte: 0x20, times: 100_000 }));
    const cases: [problem: string, zip: Uint8Array][] = [
      ['LOG is no whole zip file: End of central directory', zip.subarray(0, zip.length - 30)],
      ['LOG is no whole zip file: ', Buffer.concat([zip.subarray(0, 100), zip.subarray(120)])],
      ['LOG is no whole zip file: ', Buffer.from('PK')],
      ['samples/1_epoch_1.json in LOG occurs twice', zipOf([HEADER, SAMPLE, SAMPLE])],
      ['samples/1_epoch_1.json in LOG is encrypted', zipOf([HEADER, { ...SAMPLE, method: 8, flags: 0x801 }])],
      ['LOG is no whole zip file: strong encryption', zipOf([HEADER, { ...SAMPLE, flags: 0x841 }])],
      ['LOG has a name that is not UTF-8', zipOf([HEADER, { ...SAMPLE, name: Buffer.from([0x61, 0xff]) }])],
      ['LOG has a name that is not UTF-8', zipOf([HEADER, { ...SAMPLE, name: 'ü', flags: 0 }])],
      ['samples/1_epoch_1.json in LOG has another CRC-32', zipOf([HEADER, { ...SAMPLE, crc: 1 }])],
      ['samples/1_epoch_1.json in LOG is longer', zipOf([HEADER, { ...SAMPLE, method: 8, bytes: 3 }])],
      ['samples/1_epoch_1.json in LOG is shorter', zipOf([HEADER, { ...SAMPLE, method: 8, bytes: 300 }])],
      [
        'samples/1_epoch_1.json in LOG cannot be read',
        zipOf([HEADER, { ...SAMPLE, method: 8, stored: Buffer.from('?!') }]),
      ],
      [
        'samples/1_epoch_1.json in LOG cannot be read',
        zipOf([HEADER, { ...SAMPLE, method: 93, stored: Buffer.from('?!??????') }]),
      ],
      [
        'samples/1_epoch_1.json in LOG is compressed by method 12',
        zipOf([HEADER, { ...SAMPLE, method: 12 }]),
      ],
      ['b in LOG overlaps another member', zipOf([HEADER, SAMPLE, { ...SAMPLE, name: 'b', offset: 0 }])],
      ['LOG would be 4294967', zipOf([HEADER, big])],
      ['samples/1_epoch_1.json in LOG', zipOf([HEADER, { ...SAMPLE, method: 93, stored: zstdOf(repeated) }])],
      ['the log has a member ../a, which has a segment', zipOf([HEADER, { ...SAMPLE, name: '../a' }])],
      ['LOG has no header.json: the evaluation has not ended', zipOf([SAMPLE])],
      ['header.json is not JSON', zipOf([{ ...HEADER, content: '{' }])],
      ['the log of version undefined has no known status', zipOf([{ ...HEADER, content: '[]' }])],
      ['the evaluation has not ended', zipOf([{ ...HEADER, content: '{"status":"started"}' }])],
      ['the log has two samples by the name log.eval', zipOf([HEADER, { ...SAMPLE, name: 'log.eval' }])],
      ['the log is truncated or not JSON at byte 1', zipOf([HEADER, { ...SAMPLE, name: 'summaries.json' }])],
    ];
    for (const [problem, hostile] of cases) {
      const found = await problemOf(t, hostile);
      t.ok(found.startsWith(`UsageError: ${problem}`), `${problem}: ${found}`);
    }
  },
);

t.test('a log cut or changed at any place has an error or its content', async (t) => {
  const log = recorded('inspect_ai/arithmetic.eval');
  const whole = await readParts(writeLog(t, 'log.eval', log));
  for (let at = 2; at < log.length; at += 401) {
    const cut = await problemOf(t, log.subarray(0, at));
    t.match(cut, /^UsageError: .*no whole zip file/, `cut at ${at}`);
    const changed = Buffer.from(log);
    changed[at] = (changed[at] ?? 0) ^ 0x10;
    const read = await readParts(writeLog(t, 'log.eval', changed)).catch((error: Error) => error.name);
    if (typeof read === 'string') t.equal(read, 'UsageError');
    else
      for (const [path, part] of read.parts)
        if (path !== 'log.eval' && whole.parts.has(path)) t.strictSame(part, whole.parts.get(path));
  }
});

t.test('a member that grows a millionfold costs no memory', async (t) => {
  const stored = zstdOf(Array.from({ length: 2000 }, () => ({ byte: 0x20, times: 128 * 1024 })));
  const bomb = { ...SAMPLE, method: 93, stored, crc: crc32('x') };
  const before = process.memoryUsage().arrayBuffers;
  t.match(await problemOf(t, zipOf([HEADER, bomb])), /^UsageError: samples\/1_epoch_1.json in LOG/);
  t.ok(process.memoryUsage().arrayBuffers - before < 64 * 1024 * 1024);
});
