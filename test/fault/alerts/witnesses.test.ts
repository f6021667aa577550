/** Witnesses that are silent, slow or contradict the log, and a register that cannot be written: the alerts that they fire. */
import { createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { noteKey } from '../../../src/proof/log/note.js';
import { rawEd25519PublicKey } from '../../../src/server/keys/secrets.js';
import { openFolder } from '../../support/breaking/register.js';
import { newCreation, send } from '../../support/calling/load.js';
import { disproveFiring, IDLE, scrapeUntil } from '../../support/judging/alerts.js';
import { makeInstallation, makeUnlimitedKey } from '../../support/servers/installation.js';
import { letWitnessesBeAsked, untilWitnessed } from '../../support/wait-for-idle.js';
import { startC2spWitness } from '../../support/witnesses/c2sp-witness.js';
import { startCalendar } from '../../support/witnesses/opentimestamps/calendar.js';

const ORIGIN = 'live.log.example.com';
const register = await openFolder(t, ORIGIN);
const installation = await makeInstallation(t, { env: { CHECKPOINT_REGISTER: register.path } });
const [, keyFile = ''] = /live=([^,]+)/.exec(installation.env.LOG_KEY_FILE ?? '') ?? [];
const logKey = rawEd25519PublicKey(createPublicKey(readFileSync(keyFile)));
const c2sp = await startC2spWitness(t, [{ origin: ORIGIN, keys: [noteKey(ORIGIN, logKey)] }]);
const calendar = await startCalendar(t);
const common = { environments: ['live'] };
installation.env.WITNESSES = JSON.stringify([
  { ...common, name: 'w1', kind: 'log_witness', url: c2sp.url, verifier_key: c2sp.verifierKeys[0] },
  { ...common, name: 'bitcoin', kind: 'opentimestamps', calendars: [calendar.url], every: '1s' },
]);
const pool = installation.openPool();
const apiKey = await makeUnlimitedKey(pool);
const worker = await installation.startWorker();
const api = await installation.startApi();
const scrapeOnce = (...lines: RegExp[]) => scrapeUntil({ api, worker }, ...lines);

const submit = () => send(api.baseUrl, apiKey, newCreation());
const ofLog = (name: string, value: string) =>
  new RegExp(`^${name}\\{log="live\\.log\\.example\\.com"\\} ${value}`, 'm');
const PENDING = /^attest_witness_pending_requests\{log="live\.log\.example\.com",witness="bitcoin"\} 1$/m;

await submit();
await untilWitnessed(pool);
const health = await scrapeOnce(...IDLE, PENDING);

t.test('health, with a request that waits for its block, fires nothing', async (t) => {
  t.equal(await disproveFiring({ before: health, during: health }, []), undefined);
});

t.test('a block does not come for a day', async (t) => {
  await pool`UPDATE witness_request SET requested_at = requested_at - interval '25 hours'`;
  const during = await scrapeOnce(...IDLE);
  t.equal(await disproveFiring({ before: health, during }, ['AttestWitnessRequestOld']), undefined);
  await pool`UPDATE witness_request SET requested_at = requested_at + interval '25 hours'`;
});

t.test('a required witness does not answer for an hour', async (t) => {
  c2sp.behaviour = () => 'hang';
  await submit();
  await scrapeOnce(...IDLE, ofLog('attest_batches_unsettled', '1$'));
  await pool`UPDATE batch SET sealed_at = sealed_at - interval '61 minutes' WHERE status <> 2`;
  const during = await scrapeOnce(...IDLE, ofLog('attest_batches_oldest_unsettled_seconds', '36'));
  t.equal(await disproveFiring({ before: health, during }, ['AttestBatchesUnsettled']), undefined);
  c2sp.behaviour = () => undefined;
  await letWitnessesBeAsked(pool);
  await untilWitnessed(pool);
});

t.test('the register cannot be written', async (t) => {
  await register.setWritable(false);
  await submit();
  const during = await scrapeOnce(ofLog('attest_batches_unpublished', '1$'));
  t.equal(await disproveFiring({ before: health, during }, ['AttestRegisterBehind']), undefined);
  await register.setWritable(true);
  await untilWitnessed(pool);
});

t.test('a witness has cosigned another history', async (t) => {
  const before = await scrapeOnce(...IDLE);
  c2sp.behaviour = () => ({ status: 422, contentType: 'text/plain', body: '' });
  await submit();
  const during = await scrapeOnce(...IDLE, /^attest_witness_alarms_total\{witness="w1"\} [1-9]/m);
  t.equal(await disproveFiring({ before, during }, ['AttestWitnessAlarm']), undefined);
});
