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
import { setUpLogs } from '../../../src/server/logs/set-up-logs.js';
import { openRegister } from '../../../src/server/pipeline/register/open-register.js';
import { startWorker } from '../../../src/server/process/worker.js';
import { listLogs } from '../../../src/server/store/log/logs.js';
import { startApp } from '../../support/app.js';
import { newKey } from '../../support/calling/test-keys.js';
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
  const { log } = app.config.secrets;
  await t.rejects(
    setUpLogs(app.pool, 'log.example.com', { log, logMlDsa: { live: [other], test: [other] } }),
    /LOG_ML_DSA_KEY_FILE does not hold the key that the log live\.log\.example\.com publishes/,
  );
  t.ok((await listLogs(app.pool)).every(({ mlDsaPublicKey }) => mlDsaPublicKey?.length === 1312));
});

t.test('a worker without the ML-DSA-44 key of a log warns at start', async (t) => {
  const app = await startApp(t, { env });
  const { secrets } = app.config;
  const linesOf = async (config: typeof app.config) => {
    const lines: Record<string, unknown>[] = [];
    const hooks = createShutdownHooks();
    const options = {
      config,
      baseUrl: () => app.baseUrl,
      queuePrefix: app.queuePrefix,
      register: await openRegister(app.register),
      witnesses: [],
      log: createLogger({
        level: 'warn',
        destination: { write: (line) => void lines.push(JSON.parse(line)) },
      }),
      observeAlarm: () => {},
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
