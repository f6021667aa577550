/** Keys of a real PKCS#11 module (SoftHSM), from the token to a bundle that verifies. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { verifyBundle } from '../../../src/proof/verify/verify.js';
import { ED25519, openSocketSigner } from '../../../src/server/keys/socket/socket-signer.js';
import { startApp } from '../../support/app.js';
import { runProcess } from '../../support/calling/run-cli.js';
import { newKey } from '../../support/calling/test-keys.js';
import { openSoftHsm, type SoftHsm } from '../../support/foreign/softhsm.js';
import { startSignerProcess } from '../../support/servers/kms/signer-process.js';
import { until } from '../../support/until.js';
import { creation } from '../rpc/samples.js';

const hsm = await openSoftHsm(t);
const [P256, ED] = ['EC:prime256v1', 'EC:edwards25519'];
await hsm.makeKey(P256, 'dsse-live', '01');
await hsm.makeKey(P256, 'dsse-test', '02');
await hsm.makeKey(ED, 'log-live', '03');
await hsm.makeKey(ED, 'log-test', '04');
await hsm.makeKey(P256, 'receipt-live', '05');
await hsm.makeKey(ED, 'tuf', '06');
await hsm.makeKey('rsa:2048', 'rsa', '07');
await hsm.makeKey(P256, 'twice', '08');
await hsm.makeKey(P256, 'twice', '09');

const backendOf = ({ module, label, pinFile }: SoftHsm) => ({
  kind: 'pkcs11',
  module,
  token_label: label,
  pin_file: pinFile,
});
const log = (environment: string) => ({
  purpose: 'log',
  key: `log-${environment}`,
  origin: `${environment}.log.example.com`,
});
const KEYS = {
  'dsse-live': { purpose: 'statements', key: 'dsse-live', id: '01' },
  'dsse-test': { purpose: 'statements', key: 'dsse-test' },
  'log-live': log('live'),
  'log-live/receipt': { purpose: 'receipts', key: 'receipt-live' },
  'log-test': log('test'),
  tuf: { purpose: 'tuf', key: 'tuf' },
};

function configOf(keys: Record<string, object>, backend: object = {}) {
  const named = Object.entries(keys).map(([name, key]) => [name, { backend: 'hsm', ...key }]);
  return { backends: { hsm: { ...backendOf(hsm), ...backend } }, keys: Object.fromEntries(named) };
}

t.test(
  'a service whose keys are in a token makes bundles, and goes on after the signer was killed',
  async (t) => {
    const signer = await startSignerProcess(t, configOf(KEYS), hsm.env);
    const env = {
      DSSE_KEY_FILE: `live=${signer.setting('dsse-live')},test=${signer.setting('dsse-test')}`,
      LOG_KEY_FILE: `live=${signer.setting('log-live')},test=${signer.setting('log-test')}`,
      TUF_KEY_FILE: signer.setting('tuf'),
    };
    const app = await startApp(t, { env });
    const { key } = await newKey(app);
    const create = (digit: string) =>
      app.rest('/v1/attestations', { apiKey: key, body: creation(digit.repeat(64)) });
    const verdictOf = async (id: unknown, digit: string) => {
      const { json } = await app.rest(`/v1/attestations/${String(id)}/bundle`, { apiKey: key });
      const trustRoots = (await app.rest('/verify/trust_roots.json')).json;
      const { verdict } = await verifyBundle(json, {
        artifactSha256: digit.repeat(64),
        trustRoots,
        now: new Date(),
      });
      return verdict;
    };
    const first = await create('a');
    t.equal(first.status, 201);
    t.equal((await create('e')).status, 201);
    await app.drain();
    t.equal(await verdictOf(first.json.id, 'a'), 'verified');
    const cose = await app.rest(`/v1/attestations/${String(first.json.id)}/bundle.cose`, { apiKey: key });
    t.equal(cose.status, 200, 'a receipt, by a key of the token');

    await signer.kill();
    t.equal((await create('b')).status, 503);
    await signer.start();
    await until('it signs again', async () => (await create('c')).status === 201);
    const last = await create('d');
    await app.drain();
    t.equal(await verdictOf(last.json.id, 'd'), 'verified');
    const metrics = await (await fetch(`${signer.opsUrl}/metrics`)).text();
    t.match(metrics, /attest_signer_requests_total\{key="dsse-live",outcome="signed"\} [1-9]/);
    t.equal((await fetch(`${signer.opsUrl}/readyz`)).status, 200);
    t.equal(await signer.stop(), 0);
  },
);

t.test('what a key is not for is rejected, also after a restart', async (t) => {
  const signer = await startSignerProcess(t, configOf(KEYS), hsm.env);
  const open = () => openSocketSigner({ socketPath: signer.socketPath, keyId: 'log-live' }, ED25519);
  const checkpoint = (size: number, root: number, origin = 'live.log.example.com') =>
    Buffer.from(`${origin}\n${size}\n${Buffer.alloc(32, root).toString('base64')}\n`);
  let key = await open();
  await key.sign(checkpoint(5, 1));
  await key.sign(checkpoint(5, 1));
  await signer.kill();
  await signer.start();
  await key.close();
  key = await open();
  t.teardown(key.close);
  await t.rejects(key.sign(checkpoint(4, 1)), /size 4 of live.log.example.com is below 5, which was signed/);
  await t.rejects(key.sign(checkpoint(5, 2)), /another root of live.log.example.com at size 5 was signed/);
  await t.rejects(key.sign(checkpoint(6, 1, 'other')), /is for checkpoints of live.log.example.com and/);
  await t.rejects(key.sign(Buffer.from('anything')), /is for checkpoints of live.log.example.com and/);
  t.ok(await key.sign(checkpoint(6, 1)));
  await until('the log says it', async () => signer.lines.some(({ msg }) => /^REJECTED: /.test(String(msg))));
});

t.test('--check says of each key what to do', async (t) => {
  const check = async (config: object) => {
    const env = { ...hsm.env, SIGNER_CONFIG: JSON.stringify(config), SIGNER_SOCKET: '/nowhere' };
    const { code, stdout, stderr } = await runProcess(['signer', '--check', '--json'], env);
    if (stdout === '') return { code, errors: [stderr] };
    const lines = stdout.trimEnd().split('\n');
    return { code, errors: lines.map((line) => (JSON.parse(line) as { error?: string }).error) };
  };
  t.same(await check(configOf(KEYS)), { code: 0, errors: Object.keys(KEYS).map(() => undefined) });
  const wrong = await check(
    configOf({
      none: { purpose: 'statements', key: 'none' },
      rsa: { purpose: 'statements', key: 'rsa' },
      twice: { purpose: 'statements', key: 'twice' },
      other: { purpose: 'tuf', key: 'dsse-live' },
    }),
  );
  t.equal(wrong.code, 1);
  t.match(wrong.errors, [
    /^the token has no public key none: pkcs11-tool --list-objects$/,
    /^rsa is a key of type other than an elliptic curve, not ECDSA P-256 or Ed25519: make another key$/,
    /^the token has several public keys twice: add "id", the CKA_ID$/,
    /^it is a key of ecdsa-p256; one for tuf is of ed25519$/,
  ]);
  const one = { 'dsse-live': KEYS['dsse-live'] };
  const label = await check(configOf(one, { token_label: 'other' }));
  t.match(label, { code: 1, errors: [/ has no token other; it has: attest$/] });
  const module = await check(configOf(one, { module: '/nowhere.so' }));
  t.match(module, { code: 1, errors: [/^the module \/nowhere.so cannot be used: /] });
  const text = await check(configOf(one, { module: hsm.pinFile }));
  t.match(text, { code: 1, errors: [/^the module .* cannot be used: /] });
  const libc = await check(configOf(one, { module: 'libc.so.6' }));
  t.match(libc, { code: 1, errors: [/^the module .* cannot be used: /] });
});

t.test('a wrong PIN is tried once, and is a wrong setting', async (t) => {
  const pinFile = join(t.testdir(), 'pin');
  await writeFile(pinFile, 'wrong\n');
  const config = configOf(KEYS, { pin_file: pinFile });
  const env = {
    ...hsm.env,
    SIGNER_CONFIG: JSON.stringify(config),
    SIGNER_SOCKET: '/tmp/attest-signer-wrong-pin.sock',
    OPS_PORT: '0',
  };
  const { code, stderr } = await runProcess(['signer'], env);
  t.equal(code, 2);
  t.match(stderr, /the token attest rejects the PIN of .*: C_Login returned CKR_PIN_INCORRECT/);
});
