/** The setting WITNESSES. */
import { join } from 'node:path';
import t from 'tap';
import { WitnessKind } from '../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { readConfig } from '../../src/config/config.js';
import { CHAIN, chain, problemsOf, server } from './samples.js';

t.test('witnesses are read from JSON or a file, which may begin with a byte order mark', async (t) => {
  const { dir } = server(t);
  const [leaf, root] = chain;
  const minimal = { name: 'tsa', kind: 'rfc3161', url: 'https://tsa.example/tsr', chain_pem: CHAIN };
  const full = {
    ...minimal,
    name: 'tsa-2',
    environments: ['live'],
    required: false,
    every: '1h',
    operator: 'Somebody',
    policy_oid: '1.3.6.1.4.1.13762.3',
    hash: 'sha512',
    stamp_signatures: true,
    headers: { 'X-Api-Key': 'k' },
    username: 'user',
    password: 'pass:word',
  };
  const expected = [
    {
      name: 'tsa',
      environments: [Environment.LIVE, Environment.TEST],
      required: true,
      everyMs: 0,
      kind: WitnessKind.RFC3161,
      url: 'https://tsa.example/tsr',
      operator: 'tsa.example',
      chainsPem: [[leaf, root]],
      policyOid: undefined,
      hash: 'sha256',
      headers: {},
      stampSignatures: false,
    },
    {
      name: 'tsa-2',
      environments: [Environment.LIVE],
      required: false,
      everyMs: 3_600_000,
      kind: WitnessKind.RFC3161,
      url: 'https://tsa.example/tsr',
      operator: 'Somebody',
      chainsPem: [[leaf, root]],
      policyOid: '1.3.6.1.4.1.13762.3',
      hash: 'sha512',
      headers: { 'x-api-key': 'k', authorization: 'Basic dXNlcjpwYXNzOndvcmQ=' },
      stampSignatures: true,
    },
  ];
  const inline = ` ${JSON.stringify([minimal, full])}`;
  t.same(readConfig({ WITNESSES: inline }, { process: 'up' }).witnesses, expected);
  const { chain_pem: _, ...rest } = full;
  const beside = t.testdir({
    'witnesses.json': `\ufeff${JSON.stringify([minimal, { ...rest, chain_file: 'chain.pem' }])}`,
    'chain.pem': `A chain\n${CHAIN}`,
  });
  const file = join(beside, 'witnesses.json');
  t.same(readConfig({ WITNESSES: file }, { process: 'up' }).witnesses, expected);
  t.ok(dir);
});

t.test('a required witness whose interval is too long for the deadline is rejected', async (t) => {
  const good = { name: 'tsa', kind: 'rfc3161', url: 'https://tsa.example/tsr', chain_pem: CHAIN };
  const problems = (change: object, deadline: string) =>
    problemsOf({ WITNESSES: JSON.stringify([{ ...good, ...change }]), WITNESS_DEADLINE: deadline });
  t.same(problems({ every: '1h' }, '1h'), [
    'WITNESSES has an "every" for "tsa", which is required, that is too long for WITNESS_DEADLINE',
  ]);
  t.same(problems({ every: '1h' }, '60m').length, 1);
  t.same(problems({ every: '1h' }, '61m'), []);
  t.same(problems({ every: '1h', required: false }, '1m'), []);
  t.same(problems({}, '1m'), []);
});

t.test('each wrong member of a witness is reported under its place', async (t) => {
  const good = { name: 'tsa', kind: 'rfc3161', url: 'https://tsa.example/tsr', chain_pem: CHAIN };
  const table: [change: Record<string, unknown>, problem: RegExp][] = [
    [{ name: undefined }, /^WITNESSES\[0\]\.name is not set$/],
    [{ name: 'TSA' }, /^WITNESSES\[0\]\.name is "TSA"$/],
    [{ name: 'log' }, /^WITNESSES\[0\]\.name is "log"$/],
    [{ name: 'a'.repeat(33) }, /^WITNESSES\[0\]\.name is "a+"$/],
    [{ name: 7 }, /^WITNESSES\[0\]\.name is not a string$/],
    [{ kind: 'fax' }, /^WITNESSES\[0\]\.kind is "fax"$/],
    [{ kind: undefined }, /^WITNESSES\[0\]\.kind is not set$/],
    [{ hash: 'md5' }, /^WITNESSES\[0\]\.hash is "md5"$/],
    [{ headers: [] }, /^WITNESSES\[0\]\.headers is not an object$/],
    [{ headers: { Host: 'a' } }, /^WITNESSES\[0\]\.headers has a name that cannot be set$/],
    [{ headers: { 'x y': 'a' } }, /^WITNESSES\[0\]\.headers has a name that cannot be set$/],
    [{ headers: { 'x-key': 'a\nb' } }, /^WITNESSES\[0\]\.headers\.x-key is wrong$/],
    [{ headers: { 'x-key': 7 } }, /^WITNESSES\[0\]\.headers\.x-key is not a string$/],
    [{ username: 'u' }, /^WITNESSES\[0\] has another authentication$/],
    [{ username: 'u:v', password: 'p' }, /^WITNESSES\[0\] has another authentication$/],
    [
      { username: 'u', password: 'p', headers: { Authorization: 'Bearer x' } },
      /^WITNESSES\[0\] has another authentication$/,
    ],
    [{ url: 'tsa.example' }, /^WITNESSES\[0\]\.url is wrong \(it is not a URL\)$/],
    [{ url: 'https://u:p@h' }, /^WITNESSES\[0\]\.url is wrong \(it has a user\)$/],
    [{ environments: [] }, /^WITNESSES\[0\]\.environments is wrong$/],
    [{ environments: 'live' }, /^WITNESSES\[0\]\.environments is wrong$/],
    [{ environments: ['live', 'prod'] }, /^WITNESSES\[0\]\.environments is wrong$/],
    [{ required: 'yes' }, /^WITNESSES\[0\]\.required is wrong$/],
    [{ stamp_signatures: 'true' }, /^WITNESSES\[0\]\.stamp_signatures is wrong$/],
    [{ every: '1 hour' }, /^WITNESSES\[0\]\.every is "1 hour"$/],
    [{ operator: 'a\nb' }, /^WITNESSES\[0\]\.operator is "a\\nb"$/],
    [{ policy_oid: '3.1' }, /^WITNESSES\[0\]\.policy_oid is "3.1"$/],
    [{ policy_oid: '1.02' }, /^WITNESSES\[0\]\.policy_oid is "1.02"$/],
    [{ evry: '1h' }, /^WITNESSES\[0\] has a member "evry"$/],
    [{ chain_pem: [] }, /^WITNESSES\[0\]\.chain_pem is wrong$/],
    [{ chain_pem: Array(5).fill(CHAIN) }, /^WITNESSES\[0\]\.chain_pem is wrong$/],
    [{ chain_pem: [CHAIN, CHAIN] }, /^WITNESSES\[0\] names a chain twice$/],
    [{ chain_pem: [CHAIN, 'x'] }, /^WITNESSES\[0\]\.chain_pem\[1\] is wrong \(it has 0/],
    [{ chain_pem: undefined }, /^WITNESSES\[0\] needs one of chain_file and chain_pem$/],
    [{ chain_file: 'a.pem' }, /^WITNESSES\[0\] needs one of chain_file and chain_pem$/],
    [
      { chain_pem: chain[0] },
      /^WITNESSES\[0\]\.chain_pem\[0\] is wrong \(it has 1 certificates, not 2 to 8\)$/,
    ],
    [
      { chain_pem: [...chain].reverse().join('') },
      /chain_pem\[0\] is wrong \(certificate 1 is not issued by the next one\)$/,
    ],
    [{ chain_pem: chain[1]!.repeat(9) }, /chain_pem\[0\] is wrong \(it has 9 certificates/],
    [
      { chain_pem: `${chain[0]}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n` },
      /chain_pem\[0\] is wrong \(certificate 2 cannot be read\)$/,
    ],
    [
      { chain_pem: undefined, chain_file: 'nowhere.pem' },
      /^WITNESSES\[0\]\.chain_file\[0\] is "nowhere.pem" \(.*ENOENT\)$/,
    ],
  ];
  for (const [change, problem] of table) {
    const problems = problemsOf({ WITNESSES: JSON.stringify([{ ...good, ...change }]) });
    t.equal(problems.length, 1, JSON.stringify(problems));
    t.match(problems[0], problem);
  }
  t.same(problemsOf({ WITNESSES: JSON.stringify([good, { ...good, url: 'https://other.example' }]) }), [
    'WITNESSES has more than one "tsa"',
  ]);
  const stamping = Array.from({ length: 5 }, (_, i) => ({
    ...good,
    name: `tsa-${i}`,
    stamp_signatures: true,
  }));
  t.same(problemsOf({ WITNESSES: JSON.stringify(stamping.slice(1)) }), []);
  t.same(problemsOf({ WITNESSES: JSON.stringify(stamping) }), [
    'WITNESSES has 5 witnesses with "stamp_signatures"',
  ]);
  const bare = JSON.stringify([{ kind: 'rfc3161' }, { kind: 'rfc3161' }]);
  t.equal(problemsOf({ WITNESSES: bare }).length, 6, 'those of every witness');
});
