import fc from 'fast-check';
import t from 'tap';
import { ProofBundleSchema } from '../../../gen/attestation/v1/bundle_pb.js';
import { fromBase64, toBase64, toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { parseBlockHeader } from '../../../src/proof/opentimestamps/block-header.js';
import { encodeOts } from '../../../src/proof/opentimestamps/detached-file.js';
import { makeTimestamp } from '../../../src/proof/opentimestamps/timestamp.js';
import type { VerifyOptions } from '../../../src/proof/verify/verify.js';
import { FUZZ } from '../../support/fuzz.js';
import { mineHeader } from '../../support/witnesses/opentimestamps/block.js';
import { bitcoinEvidence, HEIGHT, MINED_AT, timestampOver } from '../opentimestamps/bitcoin-evidence.js';
import { restJson } from '../rest-json.js';
import { makeSample } from '../sample-bundles.js';
import { type Bundle, failures, rootsOf, service, verify } from '../verifying.js';

const { bundle } = await makeSample(service, ['log', 'calendar']);
const good = restJson(ProofBundleSchema, bundle) as unknown as Bundle;
const { note } = good.checkpoints[0]!;
const { headers, merkleRoot } = bitcoinEvidence(note);
const header = headers.get(HEIGHT)!;
const ROOT = '[0-9a-f]{64}';

/** Two hours after the block's time. */
const PROVEN = new Date('2025-06-07T16:00:00.000Z');

type Witness = Bundle['witnesses'][number];

/** Verifies with the calendar's part of the bundle changed. It is required. */
async function check(
  change: Partial<Witness>,
  options: Partial<VerifyOptions> = { bitcoinHeaders: headers },
) {
  const copy = structuredClone(good);
  Object.assign(copy.witnesses[1]!, change);
  const found = await verify(copy, { policy: { required: ['calendar'] }, ...options });
  const { status, code, message, time } = found.witnesses[1]!;
  return { verdict: found.verdict, status, code, message, time, found };
}

const evidenceOf = (file: Uint8Array) => ({ evidence: toBase64(file) });

t.test('with the header of its block, it proves the time of the block', async (t) => {
  const { verdict, message, time, found } = await check({});
  t.equal(verdict, 'verified');
  t.strictSame(time, PROVEN);
  const { hash } = parseBlockHeader(header);
  t.equal(
    message,
    `calendar vouched no later than 2025-06-07T16:00:00Z: Bitcoin block 850000 (${hash}) commits to the checkpoint`,
  );
  t.match(found.summary, /existed no later than 2025-06-07T16:00:00Z according to calendar\.$/);
});

t.test('without the header the evidence is not checked, and the hash to compare is named', async (t) => {
  for (const bitcoinHeaders of [undefined, new Map(), new Map([[HEIGHT + 1, header]])]) {
    const { verdict, status, code, message, time } = await check(
      {},
      bitcoinHeaders ? { bitcoinHeaders } : {},
    );
    t.strictSame([verdict, status, code], ['could_not_check', 'not_checked', 'witness.no_block_header']);
    t.match(
      message,
      new RegExp(
        `^calendar says that Bitcoin block 850000 commits to the checkpoint: not checked .* must be ${ROOT}$`,
      ),
    );
    t.equal(time, undefined);
  }
  t.equal((await check({}, { policy: { required: [] } })).verdict, 'verified', 'if it is not required');
});

t.test('a header that does not confirm it refutes it', async (t) => {
  const other = mineHeader(sha256(merkleRoot), MINED_AT.getTime() / 1_000);
  const reversed = mineHeader(merkleRoot.toReversed(), MINED_AT.getTime() / 1_000);
  const withoutWork = header.with(75, 0x03);
  const cases = { other, reversed, withoutWork, short: header.slice(1) };
  for (const [what, wrong] of Object.entries(cases)) {
    const { verdict, code } = await check({}, { bitcoinHeaders: new Map([[HEIGHT, wrong]]) });
    t.strictSame([verdict, code], ['not_verified', 'witness.wrong_block'], what);
  }
});

t.test('any flipped byte is rejected', async (t) => {
  const file = fromBase64(good.witnesses[1]!.evidence);
  for (let i = 0; i < file.length; i++) {
    const { verdict } = await check(evidenceOf(file.with(i, file[i]! ^ 0x01)));
    t.equal(verdict, 'not_verified', `byte ${i}`);
  }
  const anyFlip = fc.record({ at: fc.nat({ max: file.length - 1 }), mask: fc.integer({ min: 1, max: 255 }) });
  await fc.assert(
    fc.asyncProperty(anyFlip, async ({ at, mask }) => {
      const flipped = evidenceOf(file.with(at, file[at]! ^ mask));
      t.equal((await check(flipped)).verdict, 'not_verified');
      const { status } = await check({ ...flipped, detail: {} });
      t.not(status, 'passed', 'without detail neither');
      t.not((await check(flipped, {})).status, 'passed', 'without header neither');
    }),
    { seed: FUZZ.seed, numRuns: FUZZ.cases },
  );
  for (let i = 0; i < file.length; i += 7) {
    t.equal((await check(evidenceOf(file.slice(0, i)))).verdict, 'not_verified', `${i} bytes of it`);
  }
});

t.test('evidence without a Bitcoin block proves nothing', async (t) => {
  const pending = { kind: 'pending', uri: 'https://calendar.example' } as const;
  const waiting = evidenceOf(encodeOts(timestampOver(note, pending)));
  const promised = await check({ ...waiting, detail: { status: 'pending' } });
  t.strictSame([promised.verdict, promised.code], ['could_not_check', 'witness.pending']);
  t.match(promised.message, /the promise of https:\/\/calendar.example only, which proves nothing/);

  const unknown = { kind: 'unknown', tag: '06869a0d73d71b45', payload: Uint8Array.of(5) } as const;
  const refuted: Record<string, Uint8Array> = {
    'another blockchain': encodeOts(timestampOver(note, unknown)),
    'another digest': encodeOts(makeTimestamp(merkleRoot, [{ kind: 'bitcoin', height: HEIGHT }])),
    'no .ots file': utf8('ots'),
    nothing: new Uint8Array(),
  };
  for (const [what, file] of Object.entries(refuted)) {
    t.equal((await check(evidenceOf(file))).verdict, 'not_verified', what);
  }
});

t.test('every header that is given for one of its blocks must confirm it', async (t) => {
  const blocks = [HEIGHT, HEIGHT + 5].map((height) => ({ kind: 'bitcoin', height }) as const);
  const both = evidenceOf(encodeOts(timestampOver(note, ...blocks)));
  t.equal((await check(both)).verdict, 'verified');
  const wrong = new Map([...headers, [HEIGHT + 5, mineHeader(sha256(merkleRoot), 0)]]);
  t.equal((await check(both, { bitcoinHeaders: wrong })).code, 'witness.wrong_block');
  const earlier = mineHeader(merkleRoot, MINED_AT.getTime() / 1_000 - 60);
  const { time } = await check(both, { bitcoinHeaders: new Map([...headers, [HEIGHT + 5, earlier]]) });
  t.strictSame(time, new Date(PROVEN.getTime() - 60_000), 'the earliest counts');
});

t.test('detail matches the evidence', async (t) => {
  const { detail } = good.witnesses[1]!;
  for (const [member, value] of [
    ['bitcoin_height', HEIGHT + 1],
    ['bitcoin_merkle_root', toHex(merkleRoot)],
    ['status', 'pending'],
    ['bitcoin_header', toHex(mineHeader(sha256(merkleRoot), 0))],
  ] as const) {
    for (const bitcoinHeaders of [headers, new Map()]) {
      const found = await check({ detail: { ...detail, [member]: value } }, { bitcoinHeaders });
      t.strictSame(failures(found.found)[0], 'witness.detail_mismatch', member);
    }
  }
});

t.test('a header in the bundle proves nothing, but its hash can be compared', async (t) => {
  const carried = { detail: { ...good.witnesses[1]!.detail, bitcoin_header: toHex(header) } };
  const { verdict, code, message } = await check(carried, {});
  t.strictSame([verdict, code], ['could_not_check', 'witness.no_block_header']);
  t.ok(message.includes(`its hash ${parseBlockHeader(header).hash}`));
  t.equal((await check(carried)).verdict, 'verified');
});

t.test('its name must be that of an OpenTimestamps witness in the trust roots', async (t) => {
  const known = { bitcoinHeaders: headers, policy: { required: ['tsa'] } };
  const found = await check({ name: 'tsa' }, known);
  t.strictSame([found.verdict, found.code], ['could_not_check', 'witness.unknown']);
  const retired = { name: 'calendar', calendars: [], validTo: { seconds: 1n } };
  const trustRoots = rootsOf(service, { opentimestampsWitnesses: [retired] });
  t.equal((await check({}, { bitcoinHeaders: headers, trustRoots })).verdict, 'verified', 'now or formerly');
});
