import t from 'tap';
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { encodeVerifierKey } from '../../../src/proof/log/note.js';
import { parsePolicy } from '../../../src/proof/log/tlog-policy.js';
import { logPolicy } from '../../../src/server/public/log-policy.js';
import { newCosigner } from '../../support/witnesses/c2sp-witness.js';
import { growLog } from '../../support/witnesses/grown-log.js';

const NOW = new Date('2026-01-02T03:04:05Z');
const grown = growLog('live.log.example');
const log = {
  id: 1,
  environment: 1,
  lane: 1,
  epoch: 1,
  origin: grown.origin,
  publicKey: grown.key.publicKey,
  mlDsaPublicKey: null,
  receiptSpki: null,
  createdAt: NOW,
  closedAt: null,
  endedAt: null,
  frozenAt: null,
  frozenReason: null,
  archivedSize: 0,
};
const keys = ['w1', 'w2', 'w3', 'w4'].map((name) => {
  const { sign: _, ...key } = newCosigner(`${name}.example`, 'ed25519');
  return encodeVerifierKey(key);
});
const [k1 = '', k2 = '', k3 = '', k4 = ''] = keys;

function row(name: string, verifierKeys: string[], validTo: Date | null = null) {
  return {
    name,
    identity: { kind: WitnessKind.LOG_WITNESS as const, verifierKeys },
    validFrom: NOW,
    validTo,
  };
}

type Quorum = { threshold: number; members: string[] };

function read(witnesses: ReturnType<typeof row>[], required: string[], quorums: Quorum[] = []) {
  const names = ['log', 'tsa', 'w1', 'w2', 'w3', 'w4'];
  const named = names.map((name) => ({ name, kind: 1, required: ['log', ...required].includes(name) }));
  const policy = {
    environment: 1,
    version: 1,
    witnesses: named,
    quorums,
    deadlineMs: 1,
    validFrom: NOW,
    validTo: null,
  };
  const text = logPolicy({ logs: [{ log, url: 'https://verify.example/log/live' }], witnesses, policy }, NOW);
  const { logs, witnesses: known, groups, quorum } = parsePolicy(text);
  t.match(logs, [{ key: grown.key, url: 'https://verify.example/log/live' }]);
  return {
    names: known.map(({ name }) => name),
    groups: groups.map(({ name, threshold, members }) => `${name} ${threshold} ${members.join(' ')}`),
    quorum,
  };
}

t.test('without C2SP witnesses no cosignature is required', async (t) => {
  t.strictSame(read([], ['tsa']), { names: [], groups: [], quorum: undefined });
});

t.test('required witnesses all have to, the others need not', async (t) => {
  const witnesses = [row('w1', [k1]), row('w2', [k2]), row('w3', [k3])];
  t.strictSame(read(witnesses, ['w1', 'tsa']), { names: ['w1', 'w2', 'w3'], groups: [], quorum: 'w1' });
  t.match(read(witnesses, ['w1', 'w3']), { groups: ['quorum.all 2 w1 w3'], quorum: 'quorum.all' });
});

t.test('a quorum requires of C2SP witnesses only their minimal share', async (t) => {
  const witnesses = [row('w1', [k1]), row('w2', [k2]), row('w3', [k3])];
  const quorum = (threshold: number, ...members: string[]) => ({ threshold, members });
  t.match(read(witnesses, [], [quorum(2, 'w1', 'w2', 'w3')]), {
    groups: ['quorum.1 2 w1 w2 w3'],
    quorum: 'quorum.1',
  });
  t.match(read(witnesses, [], [quorum(2, 'tsa', 'w1', 'w2')]), { groups: ['quorum.1 1 w1 w2'] });
  t.match(read(witnesses, [], [quorum(1, 'tsa', 'w1')]), { groups: [], quorum: undefined });
  t.match(read(witnesses, ['w1'], [quorum(2, 'w1', 'w2', 'w3')]), {
    groups: ['quorum.1 1 w2 w3', 'quorum.all 2 w1 quorum.1'],
    quorum: 'quorum.all',
  });
  t.match(read(witnesses, [], [quorum(1, 'w1', 'w2'), quorum(2, 'w2', 'w3')]), {
    groups: ['quorum.1 1 w1 w2', 'quorum.2 1 w3', 'quorum.all 2 quorum.1 quorum.2'],
  });
});

t.test('a witness with several keys signs with any, and former keys are not listed', async (t) => {
  const past = new Date(NOW.getTime() - 1);
  const later = new Date(NOW.getTime() + 1);
  const witnesses = [row('w1', [k1], past), row('w1', [k2], later), row('w1', [k2, k3]), row('w2', [k4])];
  const { names, groups, quorum } = read(witnesses, ['w1']);
  t.match(names, [/^w1\.[0-9a-f]{8}$/, /^w1\.[0-9a-f]{8}$/, 'w2']);
  t.strictSame(groups, [`w1 1 ${names[0]} ${names[1]}`]);
  t.equal(quorum, 'w1');
});

t.test('of the logs of one key the newest of the first lane is listed, and the others are comments', (t) => {
  const other = growLog('other.log.example');
  const logs = [
    log,
    { ...log, id: 2, lane: 2, origin: 'live-2.log.example' },
    { ...log, id: 3, epoch: 2, origin: 'live.2.log.example' },
    { ...log, id: 4, lane: 3, origin: other.origin, publicKey: other.key.publicKey },
  ].map((one) => ({ log: one, url: `https://verify.example/${one.origin}` }));
  const text = logPolicy({ logs, witnesses: [], policy: undefined }, NOW);
  t.same(
    parsePolicy(text).logs.map(({ url }) => url),
    ['https://verify.example/live.2.log.example', `https://verify.example/${other.origin}`],
  );
  t.match(text, /^# log live\.log\.example\+\S+ https:\/\/verify\.example\/live\.log\.example$/m);
  t.match(text, /^# log live-2\.log\.example\+\S+ https:\/\/verify\.example\/live-2\.log\.example$/m);
  t.end();
});
