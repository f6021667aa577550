import t from 'tap';
import { FormatError } from '../../../src/proof/bytes/format-error.js';
import { COSIGNATURE_V1_KEY, encodeVerifierKey, noteKey } from '../../../src/proof/log/note.js';
import { encodePolicy, parsePolicy, type TlogPolicy } from '../../../src/proof/log/tlog-policy.js';
import { newCosigner } from '../../support/witnesses/c2sp-witness.js';
import { growLog } from '../../support/witnesses/grown-log.js';

const log = growLog('log.example');
const [x1, x2, y1] = ['x1', 'x2', 'y1'].map((name) => newCosigner(`${name}.example`, 'ed25519'));
const pq = newCosigner('pq.example', 'ml-dsa-44');
const vkey = (cosigner = x1) => {
  const { sign: _, ...key } = cosigner!;
  return encodeVerifierKey(key);
};
const keyOf = ({ sign: _, ...key } = x1!) => key;

const policy: TlogPolicy = {
  logs: [{ key: log.key, url: 'https://log.example/' }],
  witnesses: [
    { name: 'X1', key: keyOf(x1), url: 'https://x1.example/' },
    { name: 'X2', key: keyOf(x2) },
    { name: 'Y1', key: keyOf(y1) },
    { name: 'PQ', key: keyOf(pq) },
  ],
  groups: [
    { name: 'X', threshold: 1, members: ['X1', 'X2'] },
    { name: 'rest', threshold: 2, members: ['Y1', 'PQ'] },
    { name: 'some', threshold: 2, members: ['X', 'rest'] },
  ],
  quorum: 'some',
};

t.test('a policy is read as it was written', async (t) => {
  const text = encodePolicy(policy);
  t.strictSame(parsePolicy(text), policy);
  t.equal(
    text.replaceAll(/\S+\+[0-9a-f]{8}\+\S+/g, 'KEY'),
    [
      'log KEY https://log.example/',
      'witness X1 KEY https://x1.example/',
      'witness X2 KEY',
      'witness Y1 KEY',
      'witness PQ KEY',
      'group X any X1 X2',
      'group rest all Y1 PQ',
      'group some all X rest',
      'quorum some',
      '',
    ].join('\n'),
  );
  t.strictSame(parsePolicy('quorum none\n'), { logs: [], witnesses: [], groups: [], quorum: undefined });
});

t.test('blanks, comments and names of any letters are allowed', async (t) => {
  const text = `\n \t\n# a comment\n\t  # another\n  witness\tdépôt   ${vkey()} \t\n group g 1 dépôt\nquorum g\n`;
  t.match(parsePolicy(text), { witnesses: [{ name: 'dépôt' }], groups: [{ threshold: 1 }], quorum: 'g' });
});

t.test('a text that breaks a rule is rejected', async (t) => {
  const witness = `witness w ${vkey(x1)}\nwitness v ${vkey(x2)}\n`;
  const renamed = encodeVerifierKey(noteKey('other', x1!.publicKey, COSIGNATURE_V1_KEY));
  const bad: [string, string][] = [
    ['nothing', ''],
    ['no quorum', witness],
    ['two quorums', 'quorum none\nquorum none\n'],
    ['a quorum of nobody', 'quorum w\n'],
    ['a quorum before its witness', `quorum w\n${witness}`],
    ['no newline at the end', 'quorum none'],
    ['a carriage return', 'quorum none\r\n'],
    ['a NUL', 'quorum none\n\0\n'],
    ['an unknown line', 'mirror x\nquorum none\n'],
    ['a word too many', 'quorum none none\n'],
    ['a witness without key', 'witness w\nquorum none\n'],
    ['a witness with the key of a log', `witness w ${log.verifierKey}\nquorum w\n`],
    ['a log with the key of a witness', `log ${vkey(x1)}\nquorum none\n`],
    ['one key twice', `${witness}witness u ${renamed}\nquorum w\n`],
    ['one log twice', `log ${log.verifierKey}\nlog ${log.verifierKey}\nquorum none\n`],
    ['one name twice', `${witness}witness w ${vkey(y1)}\nquorum w\n`],
    ['the name none', `witness none ${vkey(x1)}\nquorum none\n`],
    ['a group with a taken name', `${witness}group w any v\nquorum w\n`],
    ['a group of nobody', `${witness}group g any\nquorum g\n`],
    ['a group of all of nobody', `${witness}group g all\nquorum g\n`],
    ['a member that is not known', `${witness}group g any u\nquorum g\n`],
    ['a member twice', `${witness}group g any w w\nquorum g\n`],
    ['a member of two groups', `${witness}group g any w\ngroup h any w v\nquorum h\n`],
    ['a group of itself', `${witness}group g any g w\nquorum g\n`],
    ['the member none', `${witness}group g any none\nquorum g\n`],
    ['none of them', `${witness}group g 0 w v\nquorum g\n`],
    ['more than there are', `${witness}group g 3 w v\nquorum g\n`],
    ['no number', `${witness}group g most w v\nquorum g\n`],
    ['a name of objects', `${witness}group g constructor w v\nquorum g\n`],
    ['too long', `${'#'.repeat(600_000)}\nquorum none\n`],
  ];
  for (const [what, text] of bad) t.throws(() => parsePolicy(text), FormatError, what);
  t.throws(() => encodePolicy({ ...policy, quorum: 'nobody' }), FormatError);
  t.throws(
    () => encodePolicy({ ...policy, groups: [{ name: 'a b', threshold: 1, members: ['X1'] }] }),
    FormatError,
  );
});
