import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { ProofBundleSchema } from '../../../gen/attestation/v1/bundle_pb.js';
import { verifyBundle as verifyInClient } from '../../../src/client/verify.js';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { leafHash } from '../../../src/proof/log/merkle.js';
import { createSet } from '../../../src/proof/set/create-set.js';
import { headJson } from '../../../src/proof/set/head.js';
import { readSet } from '../../../src/proof/set/read-set.js';
import { proveMember } from '../../../src/proof/set/set-proof.js';
import type { Verification, VerifyOptions } from '../../../src/proof/verify/verify.js';
import { restJson } from '../rest-json.js';
import { ARTIFACT, NOW } from '../sample.js';
import { makeSample } from '../sample-bundles.js';
import { blocked, failures, good, STEPS, service, trustRoots, verify } from '../verifying.js';
import { contentOf, entryOf, NOT_BEFORE, piecesOf, sorted, textOf } from './set-sample.js';

const PATHS = ['art/shot.png', 'log.txt', 'report.json'];
const file = textOf(PATHS, NOT_BEFORE);
const builder = createSet();
for (const path of sorted(PATHS)) builder.add(entryOf(path));
const { headText, headSha256 } = builder.end(NOT_BEFORE);
const bundle = await bundleOf(utf8(headText));
const proof = await proveMember(piecesOf(file), 'art/shot.png');
const other = textOf([...PATHS, 'more']);
const otherProof = await proveMember(piecesOf(other), 'art/shot.png');
const withProof = { ...bundle, set_proof: proof as unknown as JsonObject };

const SHOT = contentOf('art/shot.png');
const SUMMARY =
  / and existed no later than 2025-06-07T12:00:02Z according to tsa \(the operator’s own clock\)\.$/;

async function bundleOf(artifact: Uint8Array): Promise<JsonObject> {
  return restJson(ProofBundleSchema, (await makeSample(service, ['log', 'tsa'], { artifact })).bundle);
}

/** Verifies about no artifact but those of the options. */
const check = (of: unknown, options: Partial<VerifyOptions>) =>
  verify(of, { artifact: undefined, ...options });

/** The checks of the second step that are about artifact and set, each with its status. */
function aboutSet({ steps }: Verification): string[] {
  const { checks } = steps[1]!;
  return checks
    .filter(({ code }) => /^(set|artifact)/.test(code))
    .map(({ code, status }) => `${code} ${status}`);
}

const WELL = ['set.shape passed', 'set.head passed', 'set.inclusion passed'];

t.test('a file of the set verifies with its proof, as the option or in the bundle', async (t) => {
  const ways: [what: string, of: unknown, options: Partial<VerifyOptions>][] = [
    ['a proof', bundle, { artifact: SHOT, setProof: proof }],
    ['the text of a proof', bundle, { artifact: SHOT, setProof: JSON.stringify(proof) }],
    ['the bytes of a proof', bundle, { artifact: SHOT, setProof: utf8(JSON.stringify(proof)) }],
    ['its digest', bundle, { artifactSha256: entryOf('art/shot.png').sha256.toUpperCase(), setProof: proof }],
    ['the path', bundle, { artifact: SHOT, setProof: proof, memberPath: 'art/shot.png' }],
    ['a bundle with a proof', withProof, { artifact: SHOT }],
    ['its text', JSON.stringify(withProof), { artifact: SHOT, memberPath: 'art/shot.png' }],
    ['the set', bundle, { artifact: SHOT, set: utf8(file) }],
    ['a stream of the set', bundle, { artifact: SHOT, set: piecesOf(file), memberPath: 'art/shot.png' }],
  ];
  for (const [what, of, options] of ways) {
    const found = await check(of, options);
    t.equal(found.verdict, 'verified', `${what}: ${found.summary}`);
    t.strictSame(
      found.steps.map(({ name }) => name),
      STEPS,
    );
    t.strictSame(aboutSet(found), ['artifact.in_set not_checked', ...WELL, 'set.member passed'], what);
    t.match(
      found.summary,
      /^This artifact is art\/shot\.png in the set of 3 files that was attested under sub_/,
    );
    t.match(found.summary, SUMMARY);
    t.strictSame(found.set?.head.notBefore, NOT_BEFORE);
    t.strictSame(found.set?.member, { entry: entryOf('art/shot.png'), index: 0 });
    t.notOk(found.unproven.includes('/set_proof'), what);
  }
});

t.test('the set as a whole verifies without a file, and its head as the artifact', async (t) => {
  const summary = await readSet(piecesOf(file)).finish();
  t.equal(summary.headSha256, headSha256);
  for (const set of [utf8(file), piecesOf(file), summary]) {
    const found = await check(bundle, { set });
    t.equal(found.verdict, 'verified', found.summary);
    t.strictSame(aboutSet(found), [...WELL, 'set.member not_checked']);
    t.match(found.summary, /^The set of 3 files was attested under sub_/);
    t.notOk(found.set?.member);
  }
  for (const options of [{ set: summary }, { setProof: proof }]) {
    const found = await check(bundle, { artifact: utf8(headText), ...options });
    t.equal(found.verdict, 'verified', found.summary);
    t.strictSame(aboutSet(found), ['artifact.matches passed', ...WELL, 'set.member not_checked']);
    t.match(found.summary, /^The set of 3 files was attested/);
  }
  t.match(await check(bundle, { artifact: utf8(headText) }), {
    verdict: 'verified',
    summary: /^This artifact was attested/,
  });
});

t.test('a wrong file, proof or set is not verified, with its code', async (t) => {
  const forged = (change: object) => ({ ...proof, ...change });
  const head = { ...proof.head, root: otherProof.head.root, entries: 4 };
  const own = (change: object) => ({ ...bundle, set_proof: forged(change) });
  const cases: [what: string, code: string, of: unknown, options: Partial<VerifyOptions>][] = [
    ['another file', 'set.member', bundle, { artifact: contentOf('log.txt'), setProof: proof }],
    ['another digest', 'set.member', bundle, { artifactSha256: '0'.repeat(64), setProof: proof }],
    ['a path of another', 'set.member', bundle, { artifact: SHOT, setProof: proof, memberPath: 'log.txt' }],
    [
      'artifact and digest of two files',
      'set.member',
      bundle,
      { artifact: SHOT, artifactSha256: headSha256, setProof: proof },
    ],
    ['a file of no entry', 'set.member', bundle, { artifact: ARTIFACT, set: utf8(file) }],
    [
      'a file at another path',
      'set.member',
      bundle,
      { artifact: SHOT, set: utf8(file), memberPath: 'log.txt' },
    ],
    ['the proof of another set', 'set.head', bundle, { artifact: SHOT, setProof: otherProof }],
    ['another set', 'set.head', bundle, { artifact: SHOT, set: utf8(other) }],
    ['another head', 'set.head', bundle, { artifact: SHOT, setProof: forged({ head }) }],
    ['a bundle of something else', 'set.head', good, { artifact: SHOT, setProof: proof }],
    ['its artifact with a set', 'set.head', good, { artifact: ARTIFACT, set: utf8(file) }],
    ['another index', 'set.inclusion', bundle, { artifact: SHOT, setProof: forged({ index: 1 }) }],
    ['no proof', 'set.inclusion', bundle, { artifact: SHOT, setProof: forged({ inclusion_proof: [] }) }],
    ['an index beyond the set', 'set.inclusion', bundle, { artifact: SHOT, setProof: forged({ index: 3 }) }],
    [
      'an entry of another file',
      'set.inclusion',
      bundle,
      { artifact: contentOf('log.txt'), setProof: forged({ entry: entryOf('log.txt') }) },
    ],
    [
      'a set with swapped heads',
      'set.inclusion',
      bundle,
      { artifact: SHOT, set: utf8(swapped(other, file)) },
    ],
    ['no set', 'set.shape', bundle, { artifact: SHOT, set: utf8('{}') }],
    ['no JSON', 'set.shape', bundle, { artifact: SHOT, setProof: 'x' }],
    ['null', 'set.shape', { ...bundle, set_proof: null }, { artifact: SHOT }],
    ['an own proof of another set', 'set.head', { ...bundle, set_proof: otherProof }, { artifact: SHOT }],
    ['an own proof of another file', 'set.member', withProof, { artifact: contentOf('log.txt') }],
    ['an own proof that is wrong', 'set.inclusion', own({ index: 1 }), { artifact: SHOT }],
    ['the same beside the head', 'set.inclusion', own({ index: 1 }), { artifact: utf8(headText) }],
  ];
  for (const [what, code, of, options] of cases) {
    const found = await check(of, options);
    t.equal(found.verdict, 'not_verified', what);
    t.equal(failures(found)[0], code, `${what}: ${failures(found)}`);
    t.equal(found.steps[1]!.code, code, what);
    t.match(found.summary, /^Not verified: /, what);
  }
  t.strictSame(failures(await check(bundle, { artifact: SHOT })), ['artifact.mismatch'], 'without a proof');
});

/** The entries of one set under the head of another. */
function swapped(entries: string, head: string): string {
  const at = (text: string) => text.indexOf('\n],"head"');
  return entries.slice(0, at(entries)) + head.slice(at(head));
}

t.test('what is not given or not known is not checked, and nothing is claimed from it', async (t) => {
  const v2 = { ...proof, media_type: 'application/vnd.attestation-service.set-proof.v2+json' };
  const mode = { ...proof, entry: { ...proof.entry, mode: 420 } };
  const futureHead = { ...proof.head, of_tomorrow: 1 };
  const future = await bundleOf(utf8(canonical(futureHead)));
  const entry = { ...entryOf('art/shot.png'), mode: 420 };
  const only = createSet();
  only.withhold(leafHash(utf8(canonical(entry))));
  const { head, headText: text } = only.end();
  const entryOfTomorrow = { ...proof, head: headJson(head), entry, inclusion_proof: [] };
  const summary = await readSet(piecesOf(file)).finish();
  const redacted = file.replace(/^{[^\n]*art\/shot.*$/m, `{"leaf":"${leafOfShot()}"},`);
  const cases: [what: string, code: string, of: unknown, options: Partial<VerifyOptions>][] = [
    ['no file', 'set.member', withProof, {}],
    ['a malformed digest', 'artifact.invalid_digest', bundle, { artifactSha256: 'x', setProof: proof }],
    ['a file and only the head of a set', 'set.member', bundle, { artifact: SHOT, set: summary }],
    ['a file that may be withheld', 'set.member', bundle, { artifact: SHOT, set: utf8(redacted) }],
    ['a proof of tomorrow', 'set.shape', bundle, { artifact: SHOT, setProof: v2 }],
    ['an own proof of tomorrow', 'set.shape', { ...bundle, set_proof: v2 }, { artifact: SHOT }],
    [
      'an entry of tomorrow',
      'set.member',
      await bundleOf(utf8(text)),
      { artifact: SHOT, setProof: entryOfTomorrow },
    ],
    [
      'an attested head of tomorrow',
      'set.shape',
      future,
      { artifact: SHOT, setProof: { ...proof, head: futureHead } },
    ],
  ];
  for (const [what, code, of, options] of cases) {
    const found = await check(of, options);
    t.equal(found.verdict, 'could_not_check', `${what}: ${found.summary}`);
    t.equal(blocked(found)[0], code, what);
  }
  const claimed = await check(bundle, { artifact: SHOT, setProof: mode });
  t.strictSame(failures(claimed), ['set.inclusion'], 'an entry of tomorrow that the set does not hold');
  const unattested = await check(bundle, { artifact: SHOT, setProof: { ...proof, head: futureHead } });
  t.strictSame(failures(unattested), ['set.head'], 'a head of tomorrow that was not attested');
});

/** JSON of members of ASCII, in their order. */
function canonical(json: object): string {
  return JSON.stringify(Object.fromEntries(Object.entries(json).sort(([x], [y]) => (x < y ? -1 : 1))));
}

/** The leaf of the first entry: the sibling in the proof of the second. */
function leafOfShot(): string {
  return Buffer.from(siblings.inclusion_proof[0]!, 'base64').toString('hex');
}
const siblings = await proveMember(piecesOf(file), 'log.txt');

t.test('a proof that is replaced, and members that are not known, are named', async (t) => {
  const log = contentOf('log.txt');
  const replaced = await check(withProof, { artifact: log, setProof: siblings });
  t.equal(replaced.verdict, 'verified', replaced.summary);
  t.equal(replaced.unproven.at(-1), '/set_proof');
  t.equal(aboutSet(replaced).at(-1), 'set.other_proof not_checked');
  const more = { ...bundle, set_proof: { ...proof, 'of~tomorrow': 1 } };
  const found = await check(more as unknown as JsonObject, { artifact: SHOT });
  t.equal(found.verdict, 'verified', found.summary);
  t.equal(found.unproven.at(-1), '/set_proof/of~0tomorrow');
  t.equal(aboutSet(found).at(-1), 'set.unknown_member not_checked');
});

t.test('a stream that breaks is no verdict about the set', async (t) => {
  const broken = (async function* () {
    yield* piecesOf(file, 10);
    throw new Error('the disk is gone');
  })();
  const found = await check(bundle, { set: broken });
  t.equal(found.verdict, 'could_not_check');
});

t.test('the client library takes the same options, and no others', async (t) => {
  const options = { artifact: SHOT, trustRoots, now: NOW };
  t.match(await verifyInClient(bundle, { ...options, setProof: proof }), { verdict: 'verified' });
  t.match(await verifyInClient(bundle, { ...options, set: utf8(file), memberPath: 'art/shot.png' }), {
    verdict: 'verified',
  });
  await t.rejects(verifyInClient(bundle, { ...options, set: file as never }), /the bytes of a set file/);
});
