/** Lines with one flipped bit, which must be in a field that nothing proves. */
import fc from 'fast-check';
import t from 'tap';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { isLong } from '../../support/long.js';
import { differences } from '../differences.js';
import { good, verifier } from './line-sample.js';

/** Members of a line that nothing but a manifest protects. */
const UNPROVEN = [
  '/submission/status',
  '/submission/witnessed_at',
  '/submission/metadata_state',
  '/bundle/batch/first_index',
  '/bundle/witnesses/0/landed_at',
  '/bundle/witnesses/1/landed_at',
  '/bundle/witnesses/0/detail/log_index',
];

t.test('a line with one flipped bit verifies only if the bit is in an unproven field', async (t) => {
  const verify = verifier();
  const bytes = utf8(JSON.stringify(good));
  const property = fc.asyncProperty(fc.nat(bytes.length - 1), fc.nat(7), async (at, bit) => {
    const flipped = bytes.with(at, bytes[at]! ^ (1 << bit));
    const { verdict } = await verify(flipped);
    if (verdict !== 'verified') return true;
    const found = JSON.parse(Buffer.from(flipped).toString());
    return differences(good, found).every(
      (place) => UNPROVEN.includes(place) || isUnknown(place) || isNeedless(place, found),
    );
  });
  const numRuns = isLong ? 1500 : 200;
  await fc.assert(property, { numRuns });
  t.pass(`${numRuns} flips`);
});

/** Whether a place is of a member that nothing is claimed from, as the good line has none there. */
function isUnknown(place: string): boolean {
  return valueAt(good, place) === undefined;
}

/** Whether a member is gone, or a witness's kind is another, without which the line proves as much. */
function isNeedless(place: string, found: unknown): boolean {
  if (/^\/bundle\/witnesses\/\d\/kind$/.test(place)) return true;
  const optional = [
    /^\/bundle\/witnesses\/\d\/(detail|evidence)/,
    /^\/bundle\/sigstore_bundle\/.*\/keyid$/,
    /^\/submission\/(warnings|metadata_errors)$/,
  ];
  const isNeeded = !optional.some((pattern) => pattern.test(place));
  return !isNeeded && valueAt(found, place) === undefined;
}

function valueAt(value: unknown, place: string): unknown {
  const names = place.split('/').slice(1);
  return names.reduce((at, name) => (at as Record<string, unknown> | undefined)?.[name], value);
}
