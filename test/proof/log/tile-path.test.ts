import t from 'tap';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { FormatError } from '../../../src/proof/bytes/format-error.js';
import { decodeEntries, encodeEntries } from '../../../src/proof/log/entries.js';
import { parseTilePath, tilePath } from '../../../src/proof/log/tile-path.js';

t.test('only the canonical form of a tile path is accepted', async (t) => {
  const good: [Parameters<typeof tilePath>[0], string][] = [
    [{ level: 0, index: 0, width: 256 }, 'tile/0/000'],
    [{ level: 0, index: 999, width: 256 }, 'tile/0/999'],
    [{ level: 0, index: 1000, width: 256 }, 'tile/0/x001/000'],
    [{ level: 3, index: 1_234_067, width: 256 }, 'tile/3/x001/x234/067'],
    [{ level: 63, index: 5, width: 1 }, 'tile/63/005.p/1'],
    [{ level: 0, index: 1_234_067, width: 255 }, 'tile/0/x001/x234/067.p/255'],
    [{ level: 'entries', index: 123_456_789, width: 256 }, 'tile/entries/x123/x456/789'],
    [{ level: 'entries', index: 0, width: 17 }, 'tile/entries/000.p/17'],
    [{ level: 0, index: Number.MAX_SAFE_INTEGER, width: 256 }, 'tile/0/x009/x007/x199/x254/x740/991'],
  ];
  for (const [address, path] of good) {
    t.equal(tilePath(address), path);
    t.strictSame(parseTilePath(path), address);
  }
  const bad = [
    '',
    'tile',
    'tile/0',
    '/tile/0/000',
    'tile/0/000/',
    'tile/0/0',
    'tile/0/0000',
    'tile/00/000',
    'tile/01/000',
    'tile/64/000',
    'tile/-1/000',
    'tile/0/x000/000',
    'tile/0/x000/x001/000',
    'tile/0/001/000',
    'tile/0/x001/x000',
    'tile/0/X001/000',
    'tile/0/000.p',
    'tile/0/000.p/',
    'tile/0/000.p/0',
    'tile/0/000.p/01',
    'tile/0/000.p/256',
    'tile/0/000.p/257',
    'tile/0/000.p/999',
    'tile/0/000.p/1/',
    'tile/data/000',
    'tile/entries/00a',
    'tile/0/000\n',
    'tile/0/../000',
    'tile/0/%30%30%30',
    'tile/0/x009/x007/x199/x254/x740/992',
    'tile/0/x999/x999/x999/x999/x999/x999/999',
    `tile/0/${'x001/'.repeat(1000)}000`,
  ];
  for (const path of bad) t.equal(parseTilePath(path), undefined, JSON.stringify(path.slice(0, 60)));
});

t.test('entry bundles read back, and only whole ones', async (t) => {
  const records = [utf8(''), utf8('a'), new Uint8Array(65_535).fill(7), utf8('leaf')];
  const bundle = encodeEntries(records);
  t.strictSame(decodeEntries(bundle), records);
  t.strictSame(decodeEntries(new Uint8Array(0)), []);
  t.strictSame([...encodeEntries([utf8('ab')])], [0, 2, 0x61, 0x62]);
  const small = encodeEntries(records.filter((record) => record.length < 10));
  const boundaries = new Set([0, 2, 5, small.length]);
  for (let length = 0; length < small.length; length++) {
    if (boundaries.has(length)) t.ok(decodeEntries(small.subarray(0, length)));
    else t.throws(() => decodeEntries(small.subarray(0, length)), FormatError, `cut at ${length}`);
  }
  const full = Array.from({ length: 256 }, () => utf8('x'));
  t.equal(decodeEntries(encodeEntries(full)).length, 256);
  t.throws(() => encodeEntries([...full, utf8('x')]), FormatError);
  t.throws(() => decodeEntries(new Uint8Array(257 * 2)), FormatError);
  t.throws(() => encodeEntries([new Uint8Array(65_536)]), FormatError);
});
