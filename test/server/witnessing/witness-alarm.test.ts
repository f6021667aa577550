/** A witness that contradicts the log: operators get an alarm, which a witness that is merely ahead does not raise. */
import t, { type Test } from 'tap';
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { noteKey } from '../../../src/proof/log/note.js';
import type { Answer } from '../../../src/server/cosigner/cosigner.js';
import { sealJob } from '../../../src/server/jobs/job.js';
import { getLog } from '../../../src/server/log/store/logs.js';
import { createMetrics } from '../../../src/server/ops/metrics.js';
import { alarmCounter } from '../../../src/server/ops/witness-gauges.js';
import { runJob } from '../../../src/server/pipeline/stages.js';
import { logWitness } from '../../../src/server/witnessing/clients/log-witness.js';
import { setUpWitnesses } from '../../../src/server/witnessing/set-up-witnesses.js';
import { drain, openPipeline, type TestPipeline } from '../../support/pipeline.js';
import { type Behaviour, startC2spWitness } from '../../support/witnesses/c2sp-witness.js';

const text = (status: number): Answer => ({ status, contentType: 'text/plain', body: '' });
const size = (body: string): Answer => ({ status: 409, contentType: 'text/x.tlog.size', body });

/** Seals one leaf and has the witness asked; returns the metric's value and the lines about it. */
async function ask(t: Test, behave: (test: TestPipeline) => Behaviour) {
  const test = await openPipeline(t, []);
  const { origin, publicKey } = await getLog(test.pool, test.logId);
  const c2sp = await startC2spWitness(t, [{ origin, keys: [noteKey(origin, publicKey)] }]);
  c2sp.behaviour = behave(test);
  const { url, keys, verifierKeys } = c2sp;
  const setup = {
    witness: logWitness({}, { name: 'w1', url, keys, timeoutMs: 10_000, maxBytes: 65_536 }),
    kind: WitnessKind.LOG_WITNESS,
    environments: [Environment.LIVE],
    required: true,
    everyMs: 0,
    identity: { kind: WitnessKind.LOG_WITNESS as const, verifierKeys: [...verifierKeys] },
  };
  await setUpWitnesses(test.pool, [setup], { quorums: [], deadlineMs: 3_600_000 });
  const metrics = createMetrics();
  const pipeline = test.another({ witnesses: [setup], observeAlarm: alarmCounter(metrics, [setup]) });
  await test.submit(1);
  await drain(pipeline);
  const { text: exposed } = await metrics.read();
  const [row] = await test.pool<{ lastError: string }[]>`
    SELECT last_error AS "lastError" FROM witness_state WHERE witness = 'w1' AND log_id = ${test.logId}`;
  return {
    alarms: Number(/^attest_witness_alarms_total\{witness="w1"\} (\d+)$/m.exec(exposed)?.[1]),
    line: test.lines.find(({ witness, attempt }) => witness === 'w1' && attempt === 1),
    lastError: row?.lastError,
  };
}

t.test('a witness that has cosigned another history raises an alarm', async (t) => {
  const { alarms, line, lastError } = await ask(t, () => () => text(422));
  t.equal(alarms, 1);
  t.match(line, {
    level: 'fatal',
    msg: 'ALARM: the witness contradicts the log',
    origin: 'live.log.example.com',
  });
  t.match(lastError, /ALARM: what it has cosigned of live\.log\.example\.com/);
});

t.test('a witness that has cosigned more than is sealed raises an alarm', async (t) => {
  const { alarms, line, lastError } = await ask(t, () => () => size('99\n'));
  t.equal(alarms, 1);
  t.match(line, { level: 'fatal' });
  t.match(lastError, /ALARM: .* at size 99, .* of size 1: the database lost leaves, or someone else signs/);
});

t.test('a witness that cosigned a checkpoint sealed meanwhile raises no alarm', async (t) => {
  const { alarms, line } = await ask(t, (test) => async (request) => {
    if (!request.includes('\nlive.log.example.com\n1\n')) return undefined;
    await test.submit(1);
    await runJob(test.pipeline, sealJob(test.logId));
    return size('2\n');
  });
  t.equal(alarms, 0);
  t.match(line, { level: 'warn', reason: /at size 2, beyond this checkpoint of size 1$/ });
});

t.test('a witness that is unavailable raises none', async (t) => {
  const { alarms, line } = await ask(t, () => () => text(503));
  t.equal(alarms, 0);
  t.match(line, { level: 'warn', msg: 'the witness did not vouch' });
});
