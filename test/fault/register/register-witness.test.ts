/** A witness as the checkpoint register, as processes: nothing is published while it is away, and then all of it is. */
import { mkdir } from 'node:fs/promises';
import t, { type Test } from 'tap';
import { originHash } from '../../../src/proof/log/add-checkpoint.js';
import { encodeVerifierKey, noteKey } from '../../../src/proof/log/note.js';
import { listLogs } from '../../../src/server/log/store/logs.js';
import { acknowledgement, newCreation, send } from '../../support/calling/load.js';
import { type Scene, setScene } from '../../support/fault-fixture.js';
import { findFreePort } from '../../support/servers/free-port.js';
import type { ServiceProcess } from '../../support/servers/installation.js';
import { startWitnessProcess, writeWitnessKeys } from '../../support/servers/witness-process.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';

const ORIGIN = 'live.log.example.com';

async function submit({ apiKey }: Scene, api: ServiceProcess, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const creation = newCreation();
    acknowledgement(creation, await send(api.baseUrl, apiKey, creation));
  }
}

async function readiness({ opsUrl }: ServiceProcess): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${opsUrl}/readyz/live`);
  return { status: answer.status, text: await answer.text() };
}

async function newestNote({ pool }: Scene): Promise<string | undefined> {
  const [row] = await pool<{ note: string }[]>`
    SELECT b.note FROM batch b JOIN log l ON l.id = b.log_id
    WHERE l.origin = ${ORIGIN} AND b.registered_at IS NOT NULL ORDER BY b.tree_size DESC LIMIT 1`;
  return row?.note;
}

async function openWitness(t: Test) {
  const dir = t.testdir();
  await mkdir(dir, { recursive: true });
  const { settings, verifierKeys } = await writeWitnessKeys(dir, 'witness.example/w1');
  const port = await findFreePort();
  const start = async ({ pool }: Scene) => {
    const logs = (await listLogs(pool)).map(({ origin, publicKey }) => noteKey(origin, publicKey));
    const known = logs.map(encodeVerifierKey).join('\n');
    return startWitnessProcess(t, { ...settings, PORT: String(port), WITNESS_LOGS: known });
  };
  const url = `http://127.0.0.1:${port}/`;
  const env = { CHECKPOINT_REGISTER: url, CHECKPOINT_REGISTER_KEY: verifierKeys.join(' ') };
  return { env, url, port, start };
}

t.test('while the witness is unavailable nothing is published, and readiness names it', async (t) => {
  const { env, url, port, start } = await openWitness(t);
  const scene = await setScene(t, { env });
  const api = await scene.installation.startApi();
  const worker = await scene.installation.startWorker();
  const place = `${url}${originHash(ORIGIN)}/checkpoint`;
  const isAway = `register ${place} cannot be read: 127.0.0.1:${port} cannot be asked: ECONNREFUSED`;
  let before: string | undefined;
  for (const round of [1, 2]) {
    await submit(scene, api, 2);
    await until('the worker is not ready', async () => (await readiness(worker)).status === 503);
    t.match((await readiness(worker)).text, isAway);
    t.equal((await readiness(api)).status, 200, 'what is submitted is accepted');
    t.equal(await newestNote(scene), before, 'nothing is published');

    const witness = await start(scene);
    await untilWitnessed(scene.pool);
    await until('the worker is ready', async () => (await readiness(worker)).status === 200);
    const note = await (await fetch(place)).text();
    before = await newestNote(scene);
    t.ok(before && note.startsWith(before.slice(0, before.indexOf('\n\n'))), 'it has what is published');
    if (round === 2) t.equal(await witness.stop(), 0);
    else await witness.kill();
  }
  await worker.stop();
  await api.stop();
});
