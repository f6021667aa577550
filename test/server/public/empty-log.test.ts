/** A log without entries: its checkpoint is of size 0, which is signed and where everybody begins. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import t from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { openCheckpoint } from '../../../src/proof/log/checkpoint.js';
import { verifyConsistency } from '../../../src/proof/log/merkle.js';
import { parseVerifierKey } from '../../../src/proof/log/note.js';
import { freezeLog, listLogs } from '../../../src/server/log/store/logs.js';
import { logManager } from '../../../src/server/process/log-manager.js';
import { openRegister } from '../../../src/server/witnessing/register/open-register.js';
import { startApp } from '../../support/app.js';
import { runHere } from '../../support/calling/run-cli.js';
import { newKey } from '../../support/calling/test-keys.js';
import { until } from '../../support/until.js';
import { creation } from '../rpc/samples.js';

const app = await startApp(t, { apis: 2 });
const EMPTY_ROOT = createHash('sha256').digest();

type LogRoot = { environment: string; origin: string; verifier_key: string; url: string };

async function logRoots(): Promise<LogRoot[]> {
  const { json } = await app.rest('/verify/trust_roots.json');
  return json.transparency_logs as LogRoot[];
}

async function checkpointOf(url: string, verifierKey: string) {
  const answer = await fetch(url);
  const note = await answer.text();
  const { size, rootHash } = await openCheckpoint(note, parseVerifierKey(verifierKey));
  return { answer, note, size, rootHash };
}

t.test('every process serves the same signed checkpoint of size 0, and no tile', async (t) => {
  const logs = await logRoots();
  t.same(logs.map(({ environment }) => environment).sort(), ['live', 'test']);
  for (const { environment, origin, verifier_key } of logs) {
    const notes = await Promise.all(
      app.baseUrls.map((url) => checkpointOf(`${url}/verify/log/${environment}/checkpoint`, verifier_key)),
    );
    for (const { answer, note, size, rootHash } of notes) {
      t.match(answer.headers.get('content-type'), 'text/plain; charset=utf-8');
      t.match(answer.headers.get('cache-control'), /^public, max-age=\d$/);
      t.ok(note.startsWith(`${origin}\n0\n${EMPTY_ROOT.toString('base64')}\n\n— ${origin} `), note);
      t.ok(size === 0 && EMPTY_ROOT.equals(rootHash));
      t.equal(note, notes[0]?.note);
    }
    for (const path of ['tile/0/000', 'tile/0/000.p/1', 'tile/entries/000', 'tile/entries/000.p/1']) {
      t.equal((await app.rest(`/verify/log/${environment}/${path}`)).status, 404, path);
    }
  }
});

t.test('an audit begins at the empty log, and resumes from it', async (t) => {
  const args = ['audit', '--verify-url', app.verifyUrl, '--state', join(t.testdir(), 'state.json')];
  const nothing = /^ok {6}live\.log\.example\.com: the log is empty$/m;
  t.match(await runHere(args), { code: 0, stdout: nothing, stderr: '' });
  t.match(await runHere(args), { code: 0, stdout: nothing, stderr: '' }, 'a second time');
  const [{ verifier_key = '' } = {}] = (await logRoots()).filter(({ environment }) => environment === 'live');
  const url = `${app.verifyUrl}/log/live/checkpoint`;
  const before = await checkpointOf(url, verifier_key);
  const { key } = await newKey(app);
  await app.rest('/v1/attestations', { apiKey: key, body: creation('ab'.repeat(32)) });
  await app.drain();
  const after = await checkpointOf(url, verifier_key);
  t.equal(after.size, 1);
  const sizes = { oldSize: before.size, newSize: after.size };
  t.ok(verifyConsistency({ ...sizes, oldRoot: before.rootHash, newRoot: after.rootHash }, []));
  t.match(await runHere(args), { code: 0, stdout: /^ok {6}live\.log\.example\.com: 1 entry, 1 read now/m });
});

t.test('nothing is signed for a log that is frozen, and its next epoch begins with size 0', async (t) => {
  const log = (await listLogs(app.pool)).find(({ environment }) => environment === Environment.TEST);
  await freezeLog(app.pool, log?.id ?? 0, 'for a test');
  await until('it is known', async () => (await app.rest('/verify/log/test/checkpoint')).status === 404);
  await logManager(app.pool, await openRegister(app.register)).newEpoch('test');
  const next = await until('the new log is known', async () => {
    const answer = await app.rest('/verify/log/test-2/checkpoint');
    return answer.status === 200 && answer.body.toString();
  });
  t.ok(next.startsWith(`test-2.log.example.com\n0\n${EMPTY_ROOT.toString('base64')}\n`), next);
});
