import t from 'tap';
import { WitnessKind } from '../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { readConfig } from '../../src/config/config.js';
import { ConfigError } from '../../src/config/settings.js';

const GOOD = {
  name: 'bitcoin',
  kind: 'opentimestamps',
  calendars: ['https://a.example/', 'https://b.example/x'],
};

function witnessesOf(...entries: object[]) {
  return readConfig({ WITNESSES: JSON.stringify(entries) }, { process: 'up' }).witnesses;
}

function problemsOf(settings: Record<string, string>): string[] {
  try {
    readConfig(settings, { process: 'up' });
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(({ name, problem }) => `${name} ${problem}`);
  }
}

t.test('calendars are read with defaults', async (t) => {
  t.strictSame(witnessesOf(GOOD), [
    {
      name: 'bitcoin',
      environments: [Environment.LIVE, Environment.TEST],
      required: false,
      everyMs: 3_600_000,
      kind: WitnessKind.OPENTIMESTAMPS,
      calendars: ['https://a.example', 'https://b.example/x'],
      min: 2,
      explorerUrl: undefined,
    },
  ]);
  const [all] = witnessesOf({
    ...GOOD,
    every: '6h',
    min: 1,
    environments: ['live'],
    explorer_url: 'https://blocks.example/api/',
  });
  t.match(all, {
    everyMs: 6 * 3_600_000,
    min: 1,
    environments: [Environment.LIVE],
    explorerUrl: 'https://blocks.example/api',
  });
  const three = { ...GOOD, calendars: [1, 2, 3].map((n) => `https://${n}.example`) };
  t.match(witnessesOf(three), [{ min: 2 }]);
});

t.test('wrong members are reported', async (t) => {
  const table: [change: Record<string, unknown>, problem: RegExp][] = [
    [{ calendars: undefined }, /^WITNESSES\[0\]\.calendars is not set$/],
    [{ calendars: [] }, /^WITNESSES\[0\]\.calendars is wrong$/],
    [{ calendars: Array(17).fill('https://a.example') }, /^WITNESSES\[0\]\.calendars is wrong$/],
    [{ calendars: ['https://a.example', 'ftp://b.example'] }, /^WITNESSES\[0\]\.calendars\[1\] is wrong/],
    [
      { calendars: ['https://u:secret@a.example'] },
      /^WITNESSES\[0\]\.calendars\[0\] is wrong \(it has a user\)$/,
    ],
    [{ calendars: ['https://a.example/?key=secret'] }, /^WITNESSES\[0\]\.calendars\[0\] is wrong$/],
    [
      { calendars: ['https://a.example', 'https://a.example/'] },
      /calendars has "https:\/\/a.example" twice$/,
    ],
    [{ min: 0 }, /^WITNESSES\[0\]\.min is wrong$/],
    [{ explorer_url: 'blocks.example' }, /^WITNESSES\[0\]\.explorer_url is wrong/],
    [{ min: 3 }, /^WITNESSES\[0\]\.min is wrong$/],
    [{ url: 'https://a.example' }, /^WITNESSES\[0\] has a member "url"$/],
  ];
  for (const [change, problem] of table) {
    const problems = problemsOf({ WITNESSES: JSON.stringify([{ ...GOOD, ...change }]) });
    t.equal(problems.length, 1, JSON.stringify(problems));
    t.match(problems[0], problem);
    t.notMatch(problems[0], 'secret');
  }
});

t.test('a deadline that is too short for Bitcoin is reported if the calendars are required', async (t) => {
  const problems = (change: object, deadline: string) =>
    problemsOf({ WITNESSES: JSON.stringify([{ ...GOOD, ...change }]), WITNESS_DEADLINE: deadline });
  t.strictSame(problems({ required: true }, '1h'), [
    'WITNESSES requires "bitcoin", but Bitcoin takes hours, longer than WITNESS_DEADLINE',
  ]);
  t.strictSame(problems({ required: true }, '12h'), []);
  t.strictSame(problems({}, '1m'), []);
});
