import { join } from 'node:path';
import t from 'tap';
import { readConfig } from '../../src/config/config.js';
import { encodeVerifierKey, parseVerifierKey } from '../../src/proof/log/note.js';
import { newCosigner } from '../support/witnesses/c2sp-witness.js';
import { growLog } from '../support/witnesses/grown-log.js';

function messageOf(run: () => unknown): string {
  try {
    run();
    return '';
  } catch (error) {
    return String(error);
  }
}

t.test('the checkpoint register is a folder, or a witness with its keys', async (t) => {
  const keys = (['ed25519', 'ml-dsa-44'] as const).map((algorithm) =>
    encodeVerifierKey(newCosigner('witness.example/w1', algorithm)),
  );
  const read = (env: Record<string, string>) => readConfig(env, { process: 'log' }).checkpointRegister;
  const witness = 'https://witness.example/prefix?token=secret';
  t.equal(read({ CHECKPOINT_REGISTER: 'r' }), join(process.cwd(), 'r'));
  t.match(read({ CHECKPOINT_REGISTER: 's3://bucket/register?region=eu-central-1' }), {
    storage: { kind: 's3', bucket: 'bucket', prefix: 'register', options: { region: 'eu-central-1' } },
  });
  t.match(read({ CHECKPOINT_REGISTER: witness, CHECKPOINT_REGISTER_KEY: keys.join(' ') }), {
    url: witness,
    keys: keys.map(parseVerifierKey),
  });
  const wrong: [Record<string, string>, RegExp][] = [
    [{ CHECKPOINT_REGISTER: witness }, /CHECKPOINT_REGISTER_KEY is not set, expected a verifier key/],
    [{ CHECKPOINT_REGISTER_KEY: keys[0]! }, /CHECKPOINT_REGISTER_KEY is set, expected the URL of a witness/],
    [{ CHECKPOINT_REGISTER: '/r', CHECKPOINT_REGISTER_KEY: keys[0]! }, /CHECKPOINT_REGISTER_KEY is set/],
    [
      { CHECKPOINT_REGISTER: 'https://user:secret@a.example' },
      /CHECKPOINT_REGISTER is wrong \(it has a user\)/,
    ],
    [
      { CHECKPOINT_REGISTER: 'https://a.example/#secret' },
      /CHECKPOINT_REGISTER is wrong \(it has a fragment\)/,
    ],
    [{ CHECKPOINT_REGISTER: 'https:' }, /CHECKPOINT_REGISTER is wrong \(it is not a URL\)/],
    [
      { CHECKPOINT_REGISTER: witness, CHECKPOINT_REGISTER_KEY: `${keys[0]} ${keys[0]}` },
      /CHECKPOINT_REGISTER_KEY is .*\(it has a key twice\)/,
    ],
    [{ CHECKPOINT_REGISTER: witness, CHECKPOINT_REGISTER_KEY: 'x' }, /\(not a verifier key\)/],
    [
      { CHECKPOINT_REGISTER: witness, CHECKPOINT_REGISTER_KEY: growLog('live.example', 1).verifierKey },
      /\(it is the key of a log, not of a witness\)/,
    ],
  ];
  for (const [env, expected] of wrong) {
    t.throws(() => read(env), { name: 'ConfigError', message: expected });
    t.notMatch(
      messageOf(() => read(env)),
      'secret',
    );
  }
});
