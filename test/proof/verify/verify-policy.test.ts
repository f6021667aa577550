import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { instantText } from '../../../src/proof/verify/instant.js';
import { NOW, STAMP_PROVES } from '../sample.js';
import { makeSample } from '../sample-bundles.js';
import { makeTrustRoots } from '../sample-trust-roots.js';
import { COSIGNATURE_PROVES, type SampleWitness } from '../sample-witnesses.js';
import { blocked, failures, good, rootsOf, service, verify } from '../verifying.js';

const HOUR = 3_600_000;
const after = (ms: number) => new Date(STAMP_PROVES.getTime() + ms);

/** `from` and `to` are milliseconds after the time that the authority's stamp proves. */
type Window = { version: number; required: string[]; from?: number; to?: number };

function rootsWith(...policies: Window[]) {
  return rootsOf(service, {
    policies: policies.map(({ version, required, from, to }) => ({
      environment: Environment.LIVE,
      version,
      required,
      ...(from !== undefined && { validFrom: timestampFromDate(after(from)) }),
      ...(to !== undefined && { validTo: timestampFromDate(after(to)) }),
    })),
  });
}

t.test(
  'a bundle is judged by the policies that were in force when its evidence says it existed',
  async (t) => {
    const cases: [what: string, expected: string, ...policies: Window[]][] = [
      [
        'one witness more is wanted since',
        'verified',
        { version: 1, required: ['log', 'tsa'], from: -HOUR, to: HOUR },
        { version: 2, required: ['log', 'tsa', 'second'], from: 120_000 },
      ],
      [
        'its witness has another name since',
        'verified',
        { version: 1, required: ['tsa'], from: -HOUR, to: 0 },
        { version: 2, required: ['renamed'], from: 120_000 },
      ],
      [
        'both are in force, and the one that ends is met',
        'verified',
        { version: 1, required: ['tsa'], from: -HOUR, to: 0 },
        { version: 2, required: ['second'], from: -1 },
      ],
      [
        'both are in force, and the one that began is met',
        'verified',
        { version: 1, required: ['former'], from: -HOUR, to: HOUR },
        { version: 2, required: ['tsa'], from: -1 },
      ],
      [
        'the witness’s clock is behind ours at the change',
        'verified',
        { version: 1, required: ['former'], from: -HOUR, to: HOUR },
        { version: 2, required: ['tsa'], from: 59_000 },
      ],
      [
        'the weaker one had ended',
        'policy.missing_witness',
        { version: 1, required: ['tsa'], from: -HOUR, to: -1 },
        { version: 2, required: ['tsa', 'second'], from: -HOUR },
      ],
      [
        'the weaker one had not begun',
        'policy.missing_witness',
        { version: 1, required: ['tsa', 'second'], from: -HOUR, to: HOUR },
        { version: 2, required: ['tsa'], from: 120_000 },
      ],
      [
        'neither was in force: the newest decides',
        'policy.missing_witness',
        { version: 1, required: ['tsa'], from: HOUR, to: 2 * HOUR },
        { version: 2, required: ['second'], from: 2 * HOUR },
      ],
      [
        'the only one began later: the newest decides',
        'verified',
        { version: 1, required: ['tsa'], from: HOUR },
      ],
      [
        'of two that know no beginning the newer one decides',
        'policy.missing_witness',
        { version: 1, required: ['tsa'] },
        { version: 2, required: ['second'] },
      ],
      ['trust roots of before know neither beginning nor end', 'verified', { version: 7, required: ['tsa'] }],
      [
        'a later version ended before a former one',
        'policy.missing_witness',
        { version: 1, required: ['second'], from: -HOUR },
        { version: 2, required: ['tsa'], from: -2 * HOUR, to: -HOUR },
      ],
    ];
    for (const [what, expected, ...policies] of cases) {
      const result = await verify(good, { trustRoots: rootsWith(...policies) });
      t.equal(failures(result)[0] ?? result.verdict, expected, what);
      t.equal(result.verdict, expected === 'verified' ? expected : 'not_verified', what);
    }
  },
);

t.test('a policy that was replaced since is named if it is the one that is met', async (t) => {
  const former = { version: 1, required: ['tsa'], from: -HOUR, to: HOUR };
  const step = async (...policies: Window[]) =>
    (await verify(good, { trustRoots: rootsWith(...policies) })).steps.find(({ name }) => name === 'policy');
  const met = await step(former, { version: 2, required: ['second'], from: -1 });
  const named = `by policy 1, which was in force until ${instantText(after(HOUR))}`;
  t.match(met, { code: 'policy.passed', message: `tsa has vouched; ${named}` });
  t.match(met?.checks.at(-1), { code: 'policy.former', status: 'passed' });
  t.equal((await step(former, { version: 2, required: ['tsa'], from: -1 }))?.message, 'tsa has vouched');
});

t.test('a bundle without its evidence selects only later policies, or the newest', async (t) => {
  const bundleOf = async (...witnesses: SampleWitness[]) => (await makeSample(service, witnesses)).bundle;
  const whole = await bundleOf('log', 'tsa', 'cosigner');
  const withoutStamp = await bundleOf('log', 'cosigner');
  const untimed = await bundleOf('log');
  t.ok(COSIGNATURE_PROVES > STAMP_PROVES);
  const strictNow = rootsWith(
    { version: 1, required: ['log'], from: -2 * HOUR, to: -1 },
    { version: 2, required: ['tsa', 'w1'], from: -HOUR },
  );
  t.equal((await verify(whole, { trustRoots: strictNow })).verdict, 'verified');
  for (const bundle of [withoutStamp, untimed]) {
    t.ok(failures(await verify(bundle, { trustRoots: strictNow })).includes('policy.missing_witness'));
  }
  const weakBefore = rootsWith(
    { version: 1, required: ['log'], from: -HOUR, to: HOUR },
    { version: 2, required: ['second'], from: -1 },
  );
  t.equal(
    (await verify(whole, { trustRoots: weakBefore })).verdict,
    'verified',
    'it is proven to be of then',
  );
  const lost = await verify(untimed, { trustRoots: weakBefore });
  t.strictSame(failures(lost), ['policy.missing_witness'], 'nothing proves it, so the newest decides');
  const strangers = { ...weakBefore, timestamp_authorities: [] };
  const stamped = await verify(await bundleOf('log', 'tsa'), { trustRoots: strangers });
  t.strictSame(failures(stamped), ['policy.missing_witness'], 'a stamp by a stranger proves no time');
});

t.test(
  'of several policies in force the verdict follows one that may still be met, or the newest',
  async (t) => {
    const { bundle } = await makeSample(service, ['log', 'tsa', 'calendar']);
    const windows = { from: -HOUR, to: HOUR };
    const open = await verify(bundle, {
      trustRoots: rootsWith(
        { version: 1, required: ['calendar'], ...windows },
        { version: 2, required: ['second'], from: -1 },
      ),
    });
    t.equal(open.verdict, 'could_not_check');
    t.strictSame(blocked(open), ['policy.not_checkable']);
    const failed = await verify(bundle, {
      trustRoots: rootsWith(
        { version: 1, required: ['calendar', 'first'], ...windows },
        { version: 2, required: ['second'], from: -1 },
      ),
    });
    t.match(failed.summary, 'the required witness second has not vouched');
  },
);

t.test("a caller's policy overrides those of the trust roots", async (t) => {
  const trustRoots = rootsWith({ version: 1, required: ['tsa'], from: -HOUR });
  t.equal((await verify(good, { trustRoots })).verdict, 'verified');
  const policy = { required: ['second'] };
  t.strictSame(failures(await verify(good, { trustRoots, policy })), ['policy.missing_witness']);
  const strict = rootsWith({ version: 1, required: ['second'], from: -HOUR });
  t.equal((await verify(good, { trustRoots: strict, policy: { required: ['tsa'] } })).verdict, 'verified');
});

t.test('a closed log still verifies, except checkpoints that are proven to be later', async (t) => {
  const closedAt = (ms: number) =>
    rootsOf(service, {
      transparencyLogs: makeTrustRoots(service).transparencyLogs.map((log) => ({
        ...log,
        validTo: timestampFromDate(after(ms)),
      })),
    });
  t.equal((await verify(good, { trustRoots: closedAt(0) })).verdict, 'verified');
  const forged = await verify(good, { trustRoots: closedAt(-1) });
  t.ok(failures(forged).includes('checkpoint.log_closed'), failures(forged).join());
  const { bundle } = await makeSample(service, ['log']);
  const policy = { required: ['log'] };
  t.equal(
    (await verify(bundle, { trustRoots: closedAt(-1), policy, now: NOW })).verdict,
    'verified',
    'no time',
  );
});
