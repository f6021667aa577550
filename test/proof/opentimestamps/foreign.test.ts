/** The codec against Debian's python3-opentimestamps, both ways. */
import fc from 'fast-check';
import t from 'tap';
import { fromHex, toHex } from '../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { parseBlockHeader } from '../../../src/proof/opentimestamps/block-header.js';
import { parseCalendarAnswer } from '../../../src/proof/opentimestamps/calendar-answer.js';
import { encodeOts, parseOts } from '../../../src/proof/opentimestamps/detached-file.js';
import {
  attestationsOf,
  makeTimestamp,
  mergeTimestamps,
  type Timestamp,
} from '../../../src/proof/opentimestamps/timestamp.js';
import { encodeTimestamp } from '../../../src/proof/opentimestamps/timestamp-codec.js';
import { FUZZ } from '../../support/fuzz.js';
import { mineHeader } from '../../support/witnesses/opentimestamps/block.js';
import { type ForeignAttestation, runForeign } from '../../support/witnesses/opentimestamps/foreign.js';
import { timestampOf } from './arbitrary.js';

const DIGEST = sha256(Buffer.from('a file'));
const samples = (seed: number) => fc.sample(timestampOf(DIGEST), { seed, numRuns: FUZZ.cases });

function described(timestamp: Timestamp): unknown[] {
  const found = attestationsOf(timestamp).map(({ message, attestation }) => ({
    message: toHex(message),
    ...attestation,
    ...(attestation.kind === 'unknown' && { payload: toHex(attestation.payload) }),
  }));
  return found.map(sorted).sort();
}

function sorted(value: object): string {
  return JSON.stringify(Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))));
}

function sortedAll(found: readonly ForeignAttestation[] | undefined): unknown[] {
  return (found ?? []).map(sorted).sort();
}

t.test('files that we write are read the same, and written the same', async (t) => {
  const timestamps = samples(FUZZ.seed);
  const files = timestamps.map((timestamp) => toHex(encodeOts(timestamp)));
  const found = await runForeign(files.map((file) => ['read', [file]] as const));
  for (const [i, { file, attestations, error }] of found.entries()) {
    t.equal(error, undefined, `file ${i} is read`);
    t.equal(file, files[i], `file ${i} has the canonical order`);
    t.strictSame(
      sortedAll(attestations),
      described(timestamps[i]!),
      'it has the same attestations and messages',
    );
    t.strictSame(parseOts(fromHex(file!)).timestamp, timestamps[i], 'what is written there is read here');
  }
});

t.test('answers of calendars are read the same', async (t) => {
  const timestamps = samples(FUZZ.seed + 1).filter((one) => encodeTimestamp(one).length <= 10_000);
  const answers = timestamps.map((timestamp) => toHex(encodeTimestamp(timestamp)));
  const found = await runForeign(answers.map((answer) => ['read_answer', [toHex(DIGEST), answer]] as const));
  for (const [i, { answer }] of found.entries()) {
    t.equal(answer, answers[i]);
    t.strictSame(parseCalendarAnswer(DIGEST, fromHex(answer!)), timestamps[i]);
  }
});

t.test('merging makes the same file', async (t) => {
  const pairs = samples(FUZZ.seed + 2).map((one, i, all) => [one, all[(i + 1) % all.length]!] as const);
  const found = await runForeign(
    pairs.map((pair) => ['merge', [pair.map((one) => toHex(encodeOts(one)))]] as const),
  );
  for (const [i, { file }] of found.entries()) {
    const [a, b] = pairs[i]!;
    t.equal(toHex(encodeOts(mergeTimestamps(a, b))), file);
    t.strictSame(mergeTimestamps(b, a), mergeTimestamps(a, b), 'in either order');
  }
});

t.test('both reject the same proofs', async (t) => {
  const good = encodeOts(samples(FUZZ.seed + 3)[0]!);
  const damaged = Array.from({ length: Math.min(good.length, 500) }, (_, i) => [
    good.with(i, good[i]! ^ 0x01),
    good.with(i, good[i]! ^ 0x80),
    good.slice(0, i),
  ]).flat();
  const found = await runForeign(damaged.map((bytes) => ['read', [toHex(bytes)]] as const));
  for (const [i, { error, file }] of found.entries()) {
    const ours = read(damaged[i]!);
    if (error !== undefined) t.equal(ours, undefined, `${error} there`);
    else if (ours !== undefined) t.equal(toHex(encodeOts(ours.timestamp, ours.hashTag)), file);
  }
});

function read(bytes: Uint8Array) {
  try {
    return parseOts(bytes);
  } catch {
    return undefined;
  }
}

t.test('a block header confirms the same attestation at the same time', async (t) => {
  const time = 1_400_000_000;
  const header = mineHeader(DIGEST, time);
  const file = encodeOts(makeTimestamp(DIGEST, [{ kind: 'bitcoin', height: 5 }]));
  const other = mineHeader(sha256(DIGEST), time);
  t.strictSame(
    await runForeign([
      ['verify', [toHex(file), toHex(header)]],
      ['verify', [toHex(file), toHex(other)]],
    ]),
    [{ times: [time] }, { error: 'VerificationError' }],
  );
  const { merkleRoot, time: ours } = parseBlockHeader(header);
  t.strictSame([merkleRoot, ours.getTime()], [DIGEST, time * 1000]);
});
