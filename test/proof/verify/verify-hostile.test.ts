import { type JsonObject, toBinary } from '@bufbuild/protobuf';
import t from 'tap';
import { ProofBundleSchema } from '../../../gen/attestation/v1/bundle_pb.js';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import type { VerifyOptions } from '../../../src/proof/verify/verify.js';
import { differences } from '../differences.js';
import { restJson } from '../rest-json.js';
import { makeSample } from '../sample-bundles.js';
import { changed, good, otherGood, STEPS, sample, service, verify } from '../verifying.js';

t.test('hostile input is rejected, quickly and without an exception', async (t) => {
  const struct = (value: unknown) => changed((b) => Object.assign(b.witnesses[0]!, { detail: value }));
  const deep = JSON.parse(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`);
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  const throwing = Object.defineProperty({}, 'submission', {
    enumerable: true,
    get() {
      throw new Error('boo');
    },
  });
  const cases: [string, unknown][] = [
    ['nothing', undefined],
    ['null', null],
    ['a number', 7],
    ['an array', []],
    ['an empty object', {}],
    ['empty text', ''],
    ['text that is no JSON', '{'],
    ['bytes that are no UTF-8', Uint8Array.of(0xff)],
    ['the protobuf binary', toBinary(ProofBundleSchema, sample.bundle)],
    ['a very long text', ' '.repeat(5 * 1024 * 1024)],
    ['deeply nested text', '['.repeat(100_000)],
    ['both spellings of a member', { ...good, mediaType: good.media_type as string }],
    ['deep free-form JSON', struct(deep)],
    ['cyclic free-form JSON', struct(cyclic)],
    [
      'broad free-form JSON',
      struct(Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, i]))),
    ],
    ['a function in free-form JSON', struct({ a: () => 1 })],
    ['a long text', changed((b) => Object.assign(b.witnesses[0]!, { evidence: 'A'.repeat(1_000_000) }))],
    ['too many witnesses', changed((b) => b.witnesses.push(...Array(100).fill(b.witnesses[0])))],
    ['too many hashes', changed((b) => b.checkpoints[0]!.inclusion_proof.push(...Array(100).fill('AAAA')))],
    ['the same witness twice', changed((b) => b.witnesses.push(b.witnesses[0]!))],
    ['the same checkpoint twice', changed((b) => b.checkpoints.push(b.checkpoints[1]!))],
    ['checkpoints in another order', changed((b) => b.checkpoints.reverse())],
    [
      'a checkpoint of another log',
      changed((b) =>
        Object.assign(b.checkpoints[1]!, {
          note: otherGood.checkpoints[1]!.note.replaceAll('live.', 'life.'),
        }),
      ),
    ],
    ['no checkpoints', changed((b) => Object.assign(b, { checkpoints: [] }))],
    ['a negative size', changed((b) => Object.assign(b.batch, { tree_size: -1 }))],
    ['a size beyond 2^53', changed((b) => Object.assign(b.batch, { tree_size: 2 ** 60 }))],
    ['a name with escape codes', changed((b) => Object.assign(b.witnesses[1]!, { name: '\u001b[2Jtsa' }))],
    ['a member that throws', throwing],
  ];
  for (const [what, input] of cases) {
    const result = await verify(input);
    t.not(result.verdict, 'verified', what);
    t.strictSame(
      result.steps.map(({ name }) => name),
      STEPS,
    );
    t.notMatch(JSON.stringify(result), /boo|\\u001b/);
  }
});

t.test('a member named __proto__ is one that is not known', async (t) => {
  const polluting = changed((b) =>
    Object.assign(b.witnesses[0]!, { detail: JSON.parse('{"a":{"__proto__":{"polluted":true}}}') }),
  );
  for (const input of [
    JSON.parse(`{"__proto__":{"media_type":"x"},${JSON.stringify(good).slice(1)}`),
    polluting,
  ]) {
    t.equal((await verify(input)).verdict, 'verified');
    t.notOk('polluted' in {});
  }
});

t.test('a report shows names out of a bundle as plain text only', async (t) => {
  const result = await verify({ ...good, '\u001b[31m\u202e': 1 });
  t.equal(result.steps[0]!.checks[1]!.path, '/?[31m?');
});

t.test('a bundle with any byte flipped does not verify, except in fields reported as unproven', async (t) => {
  const { bundle } = await makeSample(service, ['log', 'cosigner']);
  const policy = { required: ['w1'] };
  const json = restJson(ProofBundleSchema, bundle);
  t.equal((await verify(json, { policy })).verdict, 'verified');
  t.strictSame(await wronglyVerified(json, () => true, { policy }), []);
});

t.test('a time stamp with some byte flipped does not verify', async (t) => {
  // Each takes milliseconds to refuse; the test of time stamps flips them all.
  const isSampled = (path: string, at: number) => path.startsWith('/witnesses/1/') && at % 8 === 0;
  t.strictSame(await wronglyVerified(good, isSampled), []);
});

/** Flips a bit of each byte of the JSON's text whose change `isWanted`, and names the changes that verify all the same. */
async function wronglyVerified(
  json: JsonObject,
  isWanted: (path: string, at: number) => boolean,
  options: Partial<VerifyOptions> = {},
): Promise<string[]> {
  const bytes = utf8(JSON.stringify(json));
  const wrong: string[] = [];
  for (let at = 0; at < bytes.length; at++) {
    const flipped = bytes.with(at, bytes[at]! ^ (1 << ((at * 5) % 8)));
    const changes = differences(json, parsed(flipped));
    if (!changes.some((path) => isWanted(path, at))) continue;
    const { verdict, unproven } = await verify(flipped, options);
    if (verdict === 'verified' && !changes.every((path) => isUnproven(path, unproven) || isNeedless(path)))
      wrong.push(`${at}: ${changes}`);
  }
  return wrong;
}

/** Whether a member, or what it is in, is reported as unproven. */
function isUnproven(path: string, unproven: readonly string[]): boolean {
  return unproven.some((known) => path === known || path.startsWith(`${known}/`));
}

/** Members that a bundle may lack: a renamed one is one that is not known. */
function isNeedless(path: string): boolean {
  return /^\/witnesses\/\d\/detail(\/|$)|^\/witnesses\/0\/evidence$|\/keyid$/.test(path);
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}
