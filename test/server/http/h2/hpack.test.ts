import t from 'tap';
import { makeField } from '../../../../src/server/http/h2/fields.js';
import { HpackDecoder } from '../../../../src/server/http/h2/hpack-decoder.js';
import { HpackEncoder } from '../../../../src/server/http/h2/hpack-encoder.js';
import { decodeHuffman } from '../../../../src/server/http/h2/huffman.js';

const MAX_LIST = 16_384;

function decodeAll(decoder: HpackDecoder, hex: string): string[] | undefined {
  const block = Buffer.from(hex.replaceAll(' ', ''), 'hex');
  return decoder.decode(block, 0, block.length, MAX_LIST)?.map(({ name, value }) => `${name}: ${value}`);
}

const REQUESTS = [
  [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com'],
  [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com', 'cache-control: no-cache'],
  [
    ':method: GET',
    ':scheme: https',
    ':path: /index.html',
    ':authority: www.example.com',
    'custom-key: custom-value',
  ],
];
const DATE = 'date: Mon, 21 Oct 2013 20:13:21 GMT';
const LOCATION = 'location: https://www.example.com';
const RESPONSES = [
  [':status: 302', 'cache-control: private', DATE, LOCATION],
  [':status: 307', 'cache-control: private', DATE, LOCATION],
  [
    ':status: 200',
    'cache-control: private',
    'date: Mon, 21 Oct 2013 20:13:22 GMT',
    LOCATION,
    'content-encoding: gzip',
    'set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1',
  ],
];
/** A table of 256 octets, as appendices C.5 and C.6 have it. */
const SMALL_TABLE = '3fe101';

t.test('the examples of RFC 7541, appendix C, are decoded', async (t) => {
  const single: [string, string][] = [
    ['400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572', 'custom-key: custom-header'],
    ['040c 2f73 616d 706c 652f 7061 7468', ':path: /sample/path'],
    ['1008 7061 7373 776f 7264 0673 6563 7265 74', 'password: secret'],
    ['82', ':method: GET'],
  ];
  for (const [hex, field] of single) t.strictSame(decodeAll(new HpackDecoder(), hex), [field]);
  const sequences: [string, string[], string[][]][] = [
    [
      'C.3',
      [
        '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
        '8286 84be 5808 6e6f 2d63 6163 6865',
        '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
      ],
      REQUESTS,
    ],
    [
      'C.4',
      [
        '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
        '8286 84be 5886 a8eb 1064 9cbf',
        '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
      ],
      REQUESTS,
    ],
    [
      'C.5',
      [
        `${SMALL_TABLE} 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d`,
        '4803 3330 37c1 c0bf',
        '88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31',
      ],
      RESPONSES,
    ],
    [
      'C.6',
      [
        `${SMALL_TABLE} 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3`,
        '4883 640e ffc1 c0bf',
        '88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07',
      ],
      RESPONSES,
    ],
  ];
  for (const [name, blocks, wanted] of sequences) {
    const decoder = new HpackDecoder();
    for (const [i, block] of blocks.entries()) t.strictSame(decodeAll(decoder, block), wanted[i], name);
  }
});

t.test('malformed blocks are errors of compression', async (t) => {
  const bad: [string, string][] = [
    ['index 0', '80'],
    ['an index beyond the table', 'be'],
    ['a literal whose name is beyond it', '7f00 0161'],
    ['an integer without end', 'ffff ffff ffff ffff'],
    ['an integer that is cut', 'ff'],
    ['a string that is cut', '4003 6162'],
    ['a field without a value', '4001 61'],
    ['a table larger than the setting', '3fe2 1f'],
    ['a size update after a field', '82 20'],
    ['EOS in a string', '4001 6184 ffff ffff'],
    ['padding of 8 bits', '4001 6182 1fff'],
    ['padding of zeros', '4001 6181 18'],
  ];
  for (const [what, hex] of bad) t.throws(() => decodeAll(new HpackDecoder(), hex), { code: 9 }, what);
});

t.test('space around a value is dropped', async (t) => {
  const values = ['a', ' a', '\ta \t', ' a b ', '  ', ''];
  t.strictSame(
    values.map((value) => makeField('x', value).value),
    ['a', 'a', 'a', 'a b', '', ''],
  );
  t.strictSame(
    values.map((value) => makeField('x', value).size),
    values.map((value) => value.length + 33),
    'the table counts what was sent',
  );
  t.equal(makeField(':path', '/ ').kind, 'malformed', 'not of a pseudo-header field');
});

t.test('a list beyond the bound is dropped, and the table goes on as the client has it', async (t) => {
  const decoder = new HpackDecoder();
  const large = Buffer.concat([Buffer.from('4001617fa11e', 'hex'), Buffer.alloc(4_000, 'x')]);
  const bomb = Buffer.concat([large, Buffer.alloc(60_000, 0xbe)]);
  t.equal(decoder.decode(bomb, 0, bomb.length, MAX_LIST), undefined);
  t.equal(decodeAll(decoder, 'be')?.[0]?.length, 4_003);
  t.strictSame(decodeAll(decoder, '20 3fe11f'), [], 'a table emptied and enlarged again');
  t.throws(() => decodeAll(decoder, 'be'), { code: 9 });
});

t.test('the decoder reads what the encoder writes, with tables of any size', async (t) => {
  const encoder = new HpackEncoder();
  const decoder = new HpackDecoder();
  const sent = (n: number) => [
    ...[':status', ['200', '404', '201', '503'][n % 4] as string, 'content-type', 'application/json'],
    ...['x-request-id', `req_${n}`, 'etag', `"${'x'.repeat(n % 300)}"`, 'set-cookie', `a=${n}`],
    ...['date', 'Mon, 21 Oct 2013 20:13:21 GMT', `x-${n % 70}`, 'ÿ value', 'vary', 'origin'],
  ];
  let first = 0;
  for (let n = 0; n < 400; n++) {
    if (n === 200) encoder.limit(0);
    if (n === 300) encoder.limit(200);
    const fields = sent(n);
    const out = Buffer.alloc(HpackEncoder.maxBytes(fields));
    const end = encoder.encode(fields, out, 0);
    if (n === 0) first = end;
    const got = decoder.decode(out, 0, end, MAX_LIST) ?? [];
    t.strictSame(
      got.flatMap(({ name, value }) => [name, value]),
      fields,
    );
  }
  t.ok(first > 100);
});

t.test('every octet has its code', async (t) => {
  t.equal(decodeHuffman(Buffer.from('f1e3c2e5f23a6ba0ab90f4ff', 'hex'), 0, 12), 'www.example.com');
  t.equal(decodeHuffman(Buffer.alloc(0), 0, 0), '');
  const random = Array.from({ length: 2_000 }, (_, i) => Buffer.from([i * 7, i * 13, i >> 3, i * 31]));
  for (const bytes of random) t.doesNotThrow(() => decodeHuffman(bytes, 0, bytes.length));
});
