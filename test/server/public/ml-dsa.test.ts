import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { checkLogSignature } from '../../../src/proof/log/log-signature.js';
import { parseNote, parseVerifierKey } from '../../../src/proof/log/note.js';
import { verifyBundle } from '../../../src/proof/verify/verify.js';
import { createLogger } from '../../../src/server/core/logger.js';
import { createShutdownHooks } from '../../../src/server/core/shutdown.js';
import { mlDsaKeyPem, parseMlDsaKey } from '../../../src/server/keys/ml-dsa-key.js';
import { readLogKeyStates } from '../../../src/server/log/log-key-states.js';
import { openLogKeys } from '../../../src/server/log/log-keys.js';
import { setUpLogs } from '../../../src/server/log/set-up-logs.js';
import { listLogs } from '../../../src/server/log/store/logs.js';
import { logManager } from '../../../src/server/process/log-manager.js';
import { openStandby } from '../../../src/server/process/standby.js';
import { startWorker } from '../../../src/server/process/worker/worker.js';
import { openRegister } from '../../../src/server/witnessing/register/open-register.js';
import { startApp } from '../../support/app.js';
import { newKey } from '../../support/calling/test-keys.js';
import { until } from '../../support/until.js';
import { creation } from '../rpc/samples.js';

const dir = t.testdir();

function keyFile(name: string): string {
  const path = join(dir, `${name}.pem`);
  writeFileSync(path, mlDsaKeyPem(randomBytes(32)), { mode: 0o600 });
  return path;
}

const env = { LOG_ML_DSA_KEY_FILE: `live=${keyFile('live')},test=${keyFile('test')}` };

t.test('a log with an ML-DSA-44 key signs every checkpoint twice', async (t) => {
  const app = await startApp(t, { env });
  const rootsOf = async () =>
    (await app.rest('/verify/trust_roots.json')).json as { transparency_logs: Record<string, string>[] };
  const { transparency_logs } = await rootsOf();
  for (const log of transparency_logs) {
    const key = parseVerifierKey(log.ml_dsa_verifier_key ?? '');
    t.equal(key.name, log.origin);
    const note = (await app.rest(`/verify/log/${log.environment}/checkpoint`)).body.toString();
    t.equal(await checkLogSignature(parseNote(note), key), 'valid', 'that of the empty log too');
    const page = await app.rest(`/verify/log/${log.environment}`);
    t.equal(page.json.ml_dsa_verifier_key, log.ml_dsa_verifier_key);
  }
  const { key } = await newKey(app);
  const digest = '1'.repeat(64);
  const { json } = await app.rest('/v1/attestations', { apiKey: key, body: creation(digest) });
  await app.drain();
  const { json: bundle } = await app.rest(`/v1/attestations/${String(json.id)}/bundle`, { apiKey: key });
  const { verdict, steps } = await verifyBundle(bundle, {
    trustRoots: await rootsOf(),
    artifactSha256: digest,
    now: new Date(),
  });
  t.equal(verdict, 'verified');
  t.match(
    steps[5]!.checks.map(({ code }) => code),
    ['checkpoint.signed', 'checkpoint.signed_ml_dsa'],
  );

  const other = parseMlDsaKey(mlDsaKeyPem(randomBytes(32)));
  const { log } = await openLogKeys(app.config.secrets, createShutdownHooks());
  await t.rejects(
    setUpLogs(app.pool, 'log.example.com', { log, logMlDsa: { live: [other], test: [other] } }),
    /LOG_ML_DSA_KEY_FILE does not hold the key that the log live\.log\.example\.com publishes/,
  );
  t.ok((await listLogs(app.pool)).every(({ mlDsaPublicKey }) => mlDsaPublicKey?.length === 1312));
});

t.test('a new epoch may have another ML-DSA-44 key', async (t) => {
  const next = keyFile('live-2');
  const both = `live=${next},${env.LOG_ML_DSA_KEY_FILE},live=${keyFile('unused')}`;
  const app = await startApp(t, { env: { LOG_ML_DSA_KEY_FILE: both } });
  const { secrets } = app.config;
  const [first, second] = secrets.logMlDsa?.live ?? [];
  const { key } = await newKey(app);
  const submit = async (digest: string) => {
    const { json } = await app.rest('/v1/attestations', { apiKey: key, body: creation(digest) });
    return { id: String(json.id), digest };
  };
  const before = await submit('2'.repeat(64));
  const logs = logManager(app.pool, await openRegister(app.register));
  await t.rejects(logs.newEpoch('live', { mlDsaPublicKey: first!.publicKey }), /needs another key/);
  t.match(await logs.newEpoch('live', { mlDsaPublicKey: second!.publicKey }), {
    origin: 'live-2.log.example.com',
  });
  await until('submissions go to the new log', async () => {
    await submit(randomBytes(32).toString('hex'));
    const [row] = await app.pool`SELECT FROM submission WHERE log_id = (SELECT max(id) FROM log)`;
    return row !== undefined;
  });
  const after = await submit('3'.repeat(64));
  await app.drain();
  const trustRoots = (await app.rest('/verify/trust_roots.json')).json;
  for (const { id, digest } of [before, after]) {
    const { json: bundle } = await app.rest(`/v1/attestations/${id}/bundle`, { apiKey: key });
    const { steps } = await verifyBundle(bundle, { trustRoots, artifactSha256: digest, now: new Date() });
    const codes = steps[5]!.checks.map(({ code }) => code);
    t.match(codes, ['checkpoint.signed', 'checkpoint.signed_ml_dsa']);
  }
  const held = await openLogKeys(secrets, createShutdownHooks());
  const states = await readLogKeyStates(app.pool, { ...held, logMlDsa: undefined });
  t.match(
    states.map(({ log, algorithm, problem }) => [log.origin, algorithm, problem === undefined]),
    [
      ['live.log.example.com', 'ed25519', true],
      ['live.log.example.com', 'ml-dsa-44', false],
      ['test.log.example.com', 'ed25519', true],
      ['test.log.example.com', 'ml-dsa-44', false],
      ['live-2.log.example.com', 'ed25519', true],
      ['live-2.log.example.com', 'ml-dsa-44', false],
    ],
  );
  const all = await readLogKeyStates(app.pool, held);
  t.ok(all.every(({ problem }) => problem === undefined));
});

t.test('a worker without the ML-DSA-44 key of a log warns at start', async (t) => {
  const app = await startApp(t, { env });
  const { secrets } = app.config;
  const linesOf = async (config: typeof app.config) => {
    const lines: Record<string, unknown>[] = [];
    const hooks = createShutdownHooks();
    const log = createLogger({
      level: 'warn',
      destination: { write: (line) => void lines.push(JSON.parse(line)) },
    });
    const options = {
      ...openStandby({ databaseUrl: config.databaseUrl, log }, hooks),
      config,
      baseUrl: () => app.baseUrl,
      verifyUrl: () => `${app.baseUrl}/verify`,
      queuePrefix: app.queuePrefix,
      register: await openRegister(app.register),
      witnesses: [],
      stampWitnesses: [],
      log,
      observeAlarm: () => {},
      observeSettled: () => {},
      observeAttempts: () => {},
      observeShipments: () => {},
    };
    await startWorker(options, hooks).finally(hooks.run);
    return lines.filter(({ msg }) => String(msg).includes('ML-DSA'));
  };
  t.same(await linesOf(app.config), []);
  t.match(
    await linesOf({ ...app.config, secrets: { ...secrets, logMlDsa: undefined } }),
    ['live', 'test'].map((environment) => ({
      level: 'warn',
      origin: `${environment}.log.example.com`,
      msg: 'checkpoints lack the ML-DSA-44 signature: set LOG_ML_DSA_KEY_FILE and restart',
    })),
  );
});
