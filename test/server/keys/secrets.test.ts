import { createHmac, generateKeyPairSync, hkdfSync, randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import t from 'tap';
import { WitnessKindSchema } from '../../../gen/attestation/v1/bundle_pb.js';
import { Environment, EnvironmentSchema } from '../../../gen/attestation/v1/environment_pb.js';
import { enumName, enumNames, findEnumNumber } from '../../../src/protocol/enum-names.js';
import { openSecrets } from '../../../src/server/embedded/secrets.js';
import { createApiKey, parseApiKey } from '../../../src/server/keys/api-key.js';
import {
  deriveKey,
  deriveKeyRing,
  formatSecretKey,
  hmacApiKey,
  parseKeyRing,
} from '../../../src/server/keys/key-ring.js';
import { parseSigningKey } from '../../../src/server/keys/secrets.js';
import { fileKey } from '../../support/certificates/file-key.js';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

t.test(
  'a key has an environment, a prefix and four last characters, and other texts are no keys',
  async (t) => {
    for (const [environment, prefix] of [
      [Environment.LIVE, 'svc_live_'],
      [Environment.TEST, 'svc_test_'],
    ] as const) {
      const key = createApiKey(environment, randomBytes);
      t.match(key, new RegExp(`^${prefix}[0-9A-Za-z]{38}$`));
      t.same(parseApiKey(key), { environment, prefix, last4: key.slice(-4) });
    }
  },
);

t.test('the last six characters are the CRC-32 of the others, in base62', async (t) => {
  const key = createApiKey(Environment.LIVE, randomBytes);
  const value = [...key.slice(-6)].reduce((sum, character) => sum * 62 + BASE62.indexOf(character), 0);
  t.equal(value, crc32(key.slice(0, -6)));
});

t.test('a key with any character changed, lost, added or moved is rejected without a look-up', async (t) => {
  const key = createApiKey(Environment.TEST, randomBytes);
  for (let at = 0; at < key.length; at++) {
    const other = key[at] === 'a' ? 'b' : 'a';
    t.equal(parseApiKey(`${key.slice(0, at)}${other}${key.slice(at + 1)}`), undefined, `changed at ${at}`);
    t.equal(parseApiKey(key.slice(0, at) + key.slice(at + 1)), undefined, `lost at ${at}`);
  }
  const hostile = [
    '',
    ' ',
    `${key} `,
    `${key}\n`,
    ` ${key}`,
    key.repeat(100_000),
    `svc_live_${key.slice(9)}`,
  ];
  const forged = ['svc_live_', 'svc_prod_', 'svc__', 'SVC_TEST_'].map((prefix) => prefix + 'é'.repeat(38));
  for (const text of [...hostile, ...forged, key.toUpperCase(), key.replace('_', '-')]) {
    t.equal(parseApiKey(text), undefined, JSON.stringify(text.slice(0, 60)));
  }
});

t.test('random bytes that would bias characters are dropped', async (t) => {
  const batches = [Buffer.alloc(32, 255), Buffer.from([247, ...Array(31).fill(248)]), Buffer.alloc(31, 0)];
  const key = createApiKey(Environment.LIVE, (size) => {
    const batch = batches.shift()!;
    t.equal(batch.length, size);
    return batch;
  });
  t.equal(key.slice(9, 41), `z${'0'.repeat(31)}`);
});

t.test('a key ring is parsed in order, and keys are derived by HKDF with one label each', async (t) => {
  const bytes = [randomBytes(32), randomBytes(32)] as const;
  const ring = parseKeyRing(`${formatSecretKey('new', bytes[0])}, ${formatSecretKey('old', bytes[1])}`);
  t.same(
    ring.map(({ id, key }) => [id, key.export()]),
    [
      ['new', bytes[0]],
      ['old', bytes[1]],
    ],
  );
  const expected = (secret: Uint8Array) =>
    Buffer.from(hkdfSync('sha256', secret, '', 'attestation-service/v1/api-key', 32));
  const derived = deriveKeyRing(ring, 'api-key');
  t.same(
    derived.map(({ id, key }) => [id, key.export()]),
    [
      ['new', expected(bytes[0])],
      ['old', expected(bytes[1])],
    ],
  );
  t.notSame(deriveKey(ring[0], 'cursor').export(), deriveKey(ring[0], 'encryption').export());
  t.same(
    hmacApiKey(derived, 'svc_live_x'),
    derived.map(({ key }) => createHmac('sha256', key.export()).update('svc_live_x').digest()),
  );
});

t.test('a wrong secret key is rejected without quoting it', async (t) => {
  const text = randomBytes(33).toString('base64');
  t.throws(() => parseKeyRing(`k:${text}`), { message: 'key 1 is not base64 of 32 bytes' });
  t.throws(() => parseKeyRing(text), { message: /^key 1 does not start with an id/ });
});

t.test('a signing key is PKCS#8 of the algorithm of its use', async (t) => {
  const pem = (key: ReturnType<typeof generateKeyPairSync>['privateKey']) =>
    key.export({ type: 'pkcs8', format: 'pem' }).toString();
  const p256 = pem(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey);
  const ed25519 = pem(generateKeyPairSync('ed25519').privateKey);
  t.equal(parseSigningKey(p256, 'dsse').type, 'private');
  t.equal(parseSigningKey(ed25519, 'log').type, 'private');
  t.throws(() => parseSigningKey(ed25519, 'dsse'), {
    message: 'it is a key of type ed25519, not ECDSA P-256',
  });
  t.throws(() => parseSigningKey(p256, 'log'), { message: 'it is a key of type ec, not Ed25519' });
  t.throws(() => parseSigningKey('', 'log'), { message: 'it is not a private key in PKCS#8 PEM' });
  const cut = p256.slice(0, 80);
  t.throws(() => parseSigningKey(cut, 'dsse'), { message: 'its private key cannot be read' });
});

t.test(
  'the secrets of a data directory are created once, readable by this user alone, and reused',
  async (t) => {
    const dir = t.testdir();
    const made = await openSecrets(dir);
    const again = await openSecrets(dir);
    for (const use of ['dsse', 'log'] as const) {
      const live = fileKey(made[use].live[0]);
      t.ok(live.equals(fileKey(again[use].live[0])), use);
      t.notOk(live.equals(fileKey(made[use].test[0])), `${use}: live and test have their own`);
    }
    t.ok(made.secretKeys[0].key.equals(again.secretKeys[0].key));
    t.equal(made.adminToken, again.adminToken);
    t.match(made.adminToken, /^adm_[\w-]{43}$/);
    const files = await readdir(join(dir, 'secrets'));
    t.same(files.sort(), [
      'admin-token',
      'dsse-live.pem',
      'dsse-test.pem',
      'log-live.pem',
      'log-test.pem',
      'secret-key',
      'tuf.pem',
    ]);
    for (const file of files) t.equal((await stat(join(dir, 'secrets', file))).mode & 0o777, 0o600, file);
    t.equal((await stat(join(dir, 'secrets'))).mode & 0o777, 0o700);
  },
);

t.test('given secrets are not created', async (t) => {
  const given = await openSecrets(t.testdir());
  const dir = join(t.testdir({ given: {} }), 'given');
  t.same(await openSecrets(dir, given), given);
  t.same(await readdir(join(dir, 'secrets')), []);
  const { log, ...rest } = given;
  const opened = await openSecrets(dir, { ...rest, log: undefined });
  t.notOk(fileKey(opened.log.live[0]).equals(fileKey(log.live[0])));
  t.same((await readdir(join(dir, 'secrets'))).sort(), ['log-live.pem', 'log-test.pem']);
});

t.test('a damaged secret is reported by its file, never quoted and never replaced', async (t) => {
  for (const [name, text] of [
    ['secret-key', 'k1:hunter2'],
    ['secret-key', ''],
    ['admin-token', 'hunter2'],
    ['dsse-live.pem', '-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n'],
    ['log-test.pem', ''],
  ] as const) {
    const dir = t.testdir();
    await mkdir(join(dir, 'secrets'));
    await writeFile(join(dir, 'secrets', name), text);
    await t.rejects(openSecrets(dir), { name: 'EmbeddedError', code: 'data_dir_unusable' });
    const message = await openSecrets(dir).catch(({ message }: Error) => message);
    t.match(message, join(dir, 'secrets', name));
    t.notMatch(message, 'hunter2');
    t.equal(await readFile(join(dir, 'secrets', name), 'utf8'), text);
  }
});

t.test('enum values have the names of the protos', async (t) => {
  t.same(enumNames(EnvironmentSchema), ['live', 'test']);
  t.equal(enumName(EnvironmentSchema, Environment.TEST), 'test');
  t.equal(findEnumNumber(EnvironmentSchema, 'live'), Environment.LIVE);
  for (const text of ['', 'LIVE', 'ENVIRONMENT_LIVE', '1', '__proto__']) {
    t.equal(findEnumNumber(EnvironmentSchema, text), undefined, text);
  }
  t.throws(() => enumName(WitnessKindSchema, 0));
  t.throws(() => enumName(WitnessKindSchema, 99));
});
