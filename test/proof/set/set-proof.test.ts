import t from 'tap';
import { proveMember, readSetProof } from '../../../src/proof/set/set-proof.js';
import { deep, text } from './changed-file.js';
import { errorOf, piecesOf, thrownBy } from './set-sample.js';

t.test('a hostile member proof is rejected, quickly', async (t) => {
  const good = await proveMember(piecesOf(text), 'b');
  const json = JSON.stringify(good);
  const cyclic: Record<string, unknown> = { ...good };
  cyclic.self = cyclic;
  const cases: [what: string, says: RegExp, input: unknown][] = [
    ['nothing', /is not a JSON object/, undefined],
    ['null', /is not a JSON object/, null],
    ['an array', /is not a JSON object/, []],
    ['empty text', /is empty/, ''],
    ['text that is cut off', /is not JSON, or is cut off/, json.slice(0, -1)],
    ['bytes that are no UTF-8', /is not text in UTF-8/, Uint8Array.of(0xff)],
    ['a long text', /is longer than 0.125 MiB/, ' '.repeat(1_000_000)],
    ['a member twice', /has a member twice/, json.replace('{', '{"index":1,')],
    ['depth', /is too large, too deep/, json.replace('{', `{"a":${deep(10_000)},`)],
    ['a cycle', /is too large, too deep/, cyclic],
    ['a function', /is too large, too deep or not plain JSON/, { ...good, a: () => 1 }],
    ['no media type', /has no media_type/, { ...good, media_type: null }],
    ['a negative index', /no index/, { ...good, index: -1 }],
    ['an index in text', /no index/, { ...good, index: '1' }],
    ['no head', /the head is no plain JSON object/, { ...good, head: null }],
    ['no entry', /has no entry/, { ...good, entry: [] }],
    [
      'a withheld entry',
      /entry of the member proof has no path/,
      { ...good, entry: { leaf: '0'.repeat(64) } },
    ],
    ['a path above', /has the path \.\.\/b, which/, { ...good, entry: { ...good.entry, path: '../b' } }],
    ['a lone surrogate', /half a surrogate/, { ...good, entry: { ...good.entry, path: '\ud800' } }],
    [
      'one elsewhere',
      /is not JSON that can be hashed/,
      { ...good, entry: { ...good.entry, mode: '\ud800' } },
    ],
    ['no proof', /has no inclusion_proof/, { ...good, inclusion_proof: null }],
    ['65 hashes', /has no inclusion_proof of at most 64/, { ...good, inclusion_proof: Array(65).fill('') }],
    ['a hash of 31 bytes', /not hashes in base64/, { ...good, inclusion_proof: ['A'.repeat(42)] }],
    ['a hash that is no text', /not hashes in base64/, { ...good, inclusion_proof: [7] }],
  ];
  for (const [what, says, input] of cases) {
    const error = await thrownBy(() => readSetProof(input));
    t.match([error.code, error.message], ['set.shape', says], what);
    t.notOk(error.details.isUnsupported, what);
  }
  for (let end = 0; end < json.length; end++) {
    t.equal((await thrownBy(() => readSetProof(json.slice(0, end)))).code, 'set.shape');
  }
  const v2 = await thrownBy(() => readSetProof(json.replace('set-proof.v1', 'set-proof.v2')));
  t.strictSame(v2.details, { isUnsupported: true });
});

t.test('a proof is made of a path that the set shows', async (t) => {
  for (const [path, says] of [
    ['d', /^d is not in the set$/],
    ['c', /^c is not in the set$/],
    ['../b', /the path asked for has a segment/],
  ] as const) {
    t.match(await errorOf(proveMember(piecesOf(text), path)), { code: 'set.member', message: says });
  }
  const cut = await errorOf(proveMember(piecesOf(text.slice(0, -9)), 'a'));
  t.match(cut, { code: 'set.shape', message: /cut off/ }, 'nothing is proven before the end is read');
});
