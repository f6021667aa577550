import { randomBytes } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { WitnessKind } from '../../gen/attestation/v1/bundle_pb.js';
import { readConfig } from '../../src/config/config.js';
import { ConfigError } from '../../src/config/settings.js';
import { encodeVerifierKey } from '../../src/proof/log/note.js';
import { newCosignerKeyPem, parseCosignerKey } from '../../src/server/keys/cosigner-key.js';
import { mlDsaKeyPem } from '../../src/server/keys/ml-dsa-key.js';
import { runHere } from '../support/calling/run-cli.js';
import { newCosigner } from '../support/witnesses/c2sp-witness.js';
import { growLog } from '../support/witnesses/grown-log.js';

const dir = t.testdir();

function write(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

const ed25519 = write('ed25519.pem', newCosignerKeyPem('ed25519'));
const mlDsa = write('ml-dsa.pem', newCosignerKeyPem('ml-dsa-44'));
const [one, two] = [growLog('one.example', 1), growLog('two.example', 1)];
const env = {
  WITNESS_NAME: 'witness.example/w1',
  WITNESS_KEY_FILE: `${mlDsa},${ed25519}`,
  WITNESS_LOGS: `${one.verifierKey}\n${two.verifierKey}`,
  DATA_DIR: dir,
};

/** The problems of a configuration, each as its line. */
function problemsOf(read: () => unknown): string[] {
  try {
    read();
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message.split('\n').slice(1);
  }
}

t.test('attest witness reads its name, keys and logs', async (t) => {
  const config = readConfig(env, { process: 'witness' });
  t.match(config, { host: '0.0.0.0', port: 8080, opsPort: 9090, historyDir: join(dir, 'witness-history') });
  t.match(config.cosigners, [
    { algorithm: 'ml-dsa-44', key: { name: env.WITNESS_NAME, type: 6 } },
    { algorithm: 'ed25519', key: { name: env.WITNESS_NAME, type: 4 } },
  ]);
  t.match(config.logKeys, [{ name: 'one.example' }, { name: 'two.example' }]);
  const file = write('logs.txt', `# logs\n\n  ${one.verifierKey}\n`);
  t.equal(readConfig({ ...env, WITNESS_LOGS: file }, { process: 'witness' }).logKeys.length, 1);
});

t.test('unusable settings are reported without secrets', async (t) => {
  const secret = readFileSync(ed25519, 'utf8').split('\n')[1] ?? '';
  const cases: [Record<string, string>, RegExp][] = [
    [{ WITNESS_NAME: 'a b' }, /WITNESS_NAME is "a b" \(a note key name/],
    [{ WITNESS_NAME: 'é'.repeat(200) }, /WITNESS_NAME/],
    [{ WITNESS_NAME: '' }, /WITNESS_NAME is not set/],
    [{ WITNESS_KEY_FILE: '' }, /WITNESS_KEY_FILE is not set/],
    [{ WITNESS_KEY_FILE: join(dir, 'none.pem') }, /WITNESS_KEY_FILE .*none\.pem cannot be read: ENOENT/],
    [{ WITNESS_KEY_FILE: `${ed25519},${ed25519}` }, /two keys are of one algorithm/],
    [{ WITNESS_KEY_FILE: write('text.pem', secret) }, /it is not a private key in PKCS#8 PEM/],
    [{ WITNESS_LOGS: '' }, /WITNESS_LOGS is not set/],
    [{ WITNESS_LOGS: write('empty.txt', '# none\n') }, /it names no log/],
    [{ WITNESS_LOGS: `${one.verifierKey}\nx` }, /not a verifier key/],
    [{ WITNESS_LOGS: join(dir, 'none.txt') }, /cannot be read: ENOENT/],
  ];
  for (const [changed, expected] of cases) {
    const problems = problemsOf(() => readConfig({ ...env, ...changed }, { process: 'witness' }));
    t.equal(problems.length, 1);
    t.match(problems[0], expected);
    t.notMatch(problems[0], secret);
  }
});

t.test('new-key writes a key that only its owner reads, and never over another file', async (t) => {
  for (const algorithm of ['ed25519', 'ml-dsa-44'] as const) {
    const file = join(dir, `new-${algorithm}.pem`);
    const args = ['witness', 'new-key', '--name', 'w.example', '--algorithm', algorithm, file];
    const made = await runHere(args);
    t.equal(made.code, 0, made.stderr);
    const { key } = readConfig(
      { ...env, WITNESS_NAME: 'w.example', WITNESS_KEY_FILE: file },
      { process: 'witness' },
    ).cosigners[0]!;
    t.equal(made.stdout, `${encodeVerifierKey(key)}\n`);
    t.equal(statSync(file).mode & 0o777, 0o600);
    t.equal(parseCosignerKey(readFileSync(file, 'utf8')).algorithm, algorithm);
    const again = await runHere(args);
    t.not(again.code, 0);
    t.equal(
      encodeVerifierKey(
        readConfig({ ...env, WITNESS_NAME: 'w.example', WITNESS_KEY_FILE: file }, { process: 'witness' })
          .cosigners[0]!.key,
      ),
      made.stdout.trim(),
    );
  }
  const bad = await runHere(['witness', 'new-key', '--name', 'a b', join(dir, 'bad.pem')]);
  t.equal(bad.code, 2);
  t.match(bad.stderr, /--name/);
});

const witness = { name: 'w1', kind: 'log_witness', url: 'https://w.example/p' };
const keyOf = ({ sign: _, ...key }: ReturnType<typeof newCosigner>) => encodeVerifierKey(key);
const [first, second] = [
  keyOf(newCosigner('w.example', 'ed25519')),
  keyOf(newCosigner('w.example', 'ml-dsa-44')),
];

function readWitness(members: Record<string, unknown>) {
  return readConfig({ WITNESSES: JSON.stringify([{ ...witness, ...members }]) }, { process: 'up' }).witnesses;
}

t.test('a witness of kind log_witness has one key or several', async (t) => {
  t.match(readWitness({ verifier_key: first }), [
    {
      name: 'w1',
      kind: WitnessKind.LOG_WITNESS,
      url: witness.url,
      required: true,
      everyMs: 0,
      verifierKeys: { length: 1 },
    },
  ]);
  t.match(readWitness({ verifier_key: [first, second], required: false, every: '10m' }), [
    { required: false, everyMs: 600_000, verifierKeys: [{ type: 4 }, { type: 6 }] },
  ]);
  const many = Array.from({ length: 8 }, () => keyOf(newCosigner('w.example', 'ed25519')));
  const cases: [Record<string, unknown>, RegExp][] = [
    [{}, /WITNESSES\[0\]\.verifier_key is not set/],
    [{ verifier_key: [] }, /WITNESSES\[0\]\.verifier_key is wrong/],
    [
      { verifier_key: [...many, first] },
      /WITNESSES\[0\]\.verifier_key is wrong, expected an array of 1 to 8/,
    ],
    [{ verifier_key: [first, first] }, /twice/],
    [{ verifier_key: one.verifierKey }, /it is the key of a log, not of a witness/],
    [{ verifier_key: `${first}A` }, /verifier_key/],
    [{ verifier_key: first, url: 'ftp://x' }, /WITNESSES\[0\]\.url is wrong/],
    [{ verifier_key: first, chain_file: 'x' }, /has a member "chain_file"/],
  ];
  for (const [members, expected] of cases)
    t.match(problemsOf(() => readWitness(members)).join('\n'), expected);
  const two = [
    { ...witness, verifier_key: many },
    { ...witness, name: 'w2', verifier_key: many.map((_, i) => keyOf(newCosigner(`v${i}`, 'ed25519'))) },
  ];
  t.match(
    problemsOf(() => readConfig({ WITNESSES: JSON.stringify(two) }, { process: 'up' })).join('\n'),
    /WITNESSES has 16 verifier keys, expected at most 14/,
  );
});

t.test('LOG_ML_DSA_KEY_FILE names a key for each environment', async (t) => {
  const [live, test] = ['live', 'test'].map((name) => write(`log-${name}.pem`, mlDsaKeyPem(randomBytes(32))));
  const read = (value: string) =>
    readConfig({ LOG_ML_DSA_KEY_FILE: value }, { process: 'up' }).secrets.logMlDsa;
  t.equal(read(`live=${live},test=${test}`)?.test[0].publicKey.length, 1312);
  t.equal(read(''), undefined);
  t.match(problemsOf(() => read(`live=${live},test=${live}`)).join(), /has a key that is already named/);
  t.match(
    problemsOf(() => read(`live=${live},test=${ed25519}`)).join(),
    /it is not an ML-DSA-44 key with its seed/,
  );
  t.match(problemsOf(() => read(live ?? '')).join(), /LOG_ML_DSA_KEY_FILE/);
});
