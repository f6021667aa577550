/** Quorums: a bundle never verifies under a policy that it does not meet. */
import t from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import type { Policy } from '../../../src/proof/verify/steps/policy-step.js';
import { draws } from '../../server/json/random-message.js';
import { FUZZ } from '../../support/fuzz.js';
import { makeSample } from '../sample-bundles.js';
import type { SampleWitness } from '../sample-witnesses.js';
import { blocked, failures, rootsOf, service, verify } from '../verifying.js';

const quorum = (threshold: number, ...members: string[]) => ({ threshold, members });

/** Trust roots with one policy. */
function rootsWith({ required, quorums = [] }: Policy) {
  const one = { environment: Environment.LIVE, version: 1, required: [...required] };
  return rootsOf(service, {
    policies: [{ ...one, quorums: quorums.map(({ threshold, members }) => quorum(threshold, ...members)) }],
  });
}

async function judge(witnesses: readonly SampleWitness[], policy: Policy) {
  const { bundle } = await makeSample(service, witnesses);
  return verify(bundle, { trustRoots: rootsWith(policy) });
}

t.test('a quorum is met by as many of its members as it needs', async (t) => {
  const cases: [what: string, expected: string, witnesses: SampleWitness[], policy: Policy][] = [
    [
      'two of three',
      'verified',
      ['log', 'tsa', 'cosigner'],
      { required: [], quorums: [quorum(2, 'tsa', 'w1', 'x')] },
    ],
    [
      'one of three',
      'policy.missing_witness',
      ['log', 'tsa'],
      { required: [], quorums: [quorum(2, 'tsa', 'w1', 'x')] },
    ],
    [
      'the log counts by its name',
      'verified',
      ['log', 'tsa'],
      { required: [], quorums: [quorum(2, 'tsa', 'log')] },
    ],
    ['none', 'policy.missing_witness', ['log'], { required: ['log'], quorums: [quorum(1, 'tsa', 'w1')] }],
    [
      'a required one is missing beside it',
      'policy.missing_witness',
      ['log', 'tsa'],
      { required: ['w1'], quorums: [quorum(1, 'tsa', 'w1')] },
    ],
    [
      'one of two quorums',
      'policy.missing_witness',
      ['log', 'tsa'],
      { required: [], quorums: [quorum(1, 'tsa', 'x'), quorum(1, 'w1', 'y')] },
    ],
  ];
  for (const [what, expected, witnesses, policy] of cases) {
    const verification = await judge(witnesses, policy);
    const [failure] = failures(verification);
    t.equal(verification.verdict === 'verified' ? 'verified' : failure, expected, what);
  }
});

t.test('a member whose evidence cannot be checked may still meet the quorum', async (t) => {
  const open = await judge(['log', 'calendar'], { required: [], quorums: [quorum(1, 'calendar', 'tsa')] });
  t.equal(open.verdict, 'could_not_check');
  t.match(blocked(open), ['policy.not_checkable']);
  const short = await judge(['log', 'calendar'], {
    required: [],
    quorums: [quorum(2, 'calendar', 'tsa')],
  });
  t.equal(short.verdict, 'not_verified', 'it would not suffice');
});

t.test('evidence under a name of another kind of witness does not count', async (t) => {
  const { bundle } = await makeSample(service, ['log', 'tsa', 'cosigner']);
  for (const witness of bundle.witnesses) if (witness.name === 'tsa') witness.name = 'w1';
  const verification = await verify(bundle, {
    trustRoots: rootsWith({ required: [], quorums: [quorum(2, 'w1', 'tsa')] }),
  });
  t.not(verification.verdict, 'verified');
});

t.test('trust roots with a quorum that is always or never met are rejected', async (t) => {
  for (const impossible of [quorum(0, 'tsa'), quorum(2, 'tsa'), quorum(2, 'tsa', 'tsa'), quorum(-1, 'tsa')]) {
    const verification = await judge(['log', 'tsa'], { required: [], quorums: [impossible] });
    t.equal(verification.verdict, 'could_not_check', JSON.stringify(impossible));
  }
});

t.test('any policy is met exactly if enough of the named witnesses vouched', async (t) => {
  const draw = draws(FUZZ.seed);
  const subset = (items: readonly string[]) => items.filter(() => draw(5) < 2);
  const subsets: SampleWitness[][] = [
    ['log'],
    ['log', 'tsa'],
    ['log', 'cosigner'],
    ['log', 'tsa', 'cosigner'],
  ];
  const bundles = await Promise.all(
    subsets.map(async (witnesses) => ({ witnesses, bundle: (await makeSample(service, witnesses)).bundle })),
  );
  const names = ['log', 'tsa', 'w1', 'x', 'y'];
  let met = 0;
  for (let i = 0; i < FUZZ.cases * 5; i++) {
    const { witnesses, bundle } = bundles[draw(bundles.length)]!;
    const vouched = witnesses.map((name) => (name === 'cosigner' ? 'w1' : name)) as string[];
    const policy = {
      required: draw(3) === 0 ? subset(names) : [],
      quorums: Array.from({ length: draw(3) }, () => {
        const members = subset(names);
        return quorum(1 + draw(Math.max(1, members.length)), ...(members.length > 0 ? members : ['x']));
      }),
    };
    const isMet =
      policy.required.every((name) => vouched.includes(name)) &&
      policy.quorums.every(
        ({ threshold, members }) => members.filter((name) => vouched.includes(name)).length >= threshold,
      );
    const { verdict } = await verify(bundle, { trustRoots: rootsWith(policy) });
    t.equal(verdict === 'verified', isMet, `${vouched} under ${JSON.stringify(policy)}: ${verdict}`);
    if (isMet) met++;
  }
  t.ok(met > 10 && met < FUZZ.cases * 5 - 10, `${met} were met`);
});
