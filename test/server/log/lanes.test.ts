/** Several logs of an environment beside each other: a project's submissions go to one of them. */
import t, { type Test } from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { verifyBundle } from '../../../src/proof/verify/verify.js';
import { registerEntry } from '../../../src/server/log/register/register.js';
import { findNewestPublishedBatch } from '../../../src/server/log/store/batches.js';
import { listLogs } from '../../../src/server/log/store/logs.js';
import { logManager } from '../../../src/server/process/log-manager.js';
import { openRegister } from '../../../src/server/witnessing/register/open-register.js';
import { type App, startApp } from '../../support/app.js';
import { newCreation, send } from '../../support/calling/load.js';
import { newKey, type TestKey } from '../../support/calling/test-keys.js';
import { makeInstallation, makeUnlimitedKey } from '../../support/servers/installation.js';
import { until } from '../../support/until.js';

const LOGS = 'live:3';
const METADATA = { schema: 'purl', purl: 'pkg:npm/a-test@1.0.0' };

async function submit(app: App, { key: apiKey }: TestKey, headers = {}) {
  const sha256 = newCreation().artifactSha256;
  const body = { artifact: { sha256 }, metadata: METADATA };
  const answer = await app.rest('/v1/attestations', { apiKey, body, headers });
  t.equal(answer.status, 201, String(answer.body));
  return { id: JSON.parse(String(answer.body)).id as string, sha256 };
}

async function read(app: App, { key: apiKey }: TestKey, path: string) {
  const { status, body } = await app.rest(path, { apiKey });
  return { status, json: JSON.parse(String(body)) };
}

/** The origins of the logs that hold a project's submissions. */
async function originsOf({ pool }: App, { projectId }: TestKey): Promise<string[]> {
  const rows = await pool<{ origin: string }[]>`
    SELECT DISTINCT l.origin FROM named_submission s JOIN log l ON l.id = s.log_id
    WHERE s.project_id = ${projectId} ORDER BY l.origin`;
  return rows.map(({ origin }) => origin);
}

const trustRootsOf = async (app: App) =>
  JSON.parse(await (await fetch(`${app.verifyUrl}/trust_roots.json`)).text());

async function verify(app: App, key: TestKey, { id, sha256 }: { id: string; sha256: string }) {
  const { json } = await read(app, key, `/v1/attestations/${id}/bundle`);
  const trustRoots = await trustRootsOf(app);
  return verifyBundle(JSON.stringify(json), {
    trustRoots,
    environment: 'live',
    now: new Date(),
    artifactSha256: sha256,
  });
}

async function threeProjects(t: Test) {
  const app = await startApp(t, { env: { LOGS } });
  return { app, keys: [await newKey(app), await newKey(app), await newKey(app)] as const };
}

t.test('projects are spread over the logs, and each has its own batches and proofs', async (t) => {
  const { app, keys } = await threeProjects(t);
  const made = await Promise.all(
    keys.map(async (key) => [key, [await submit(app, key), await submit(app, key)]] as const),
  );
  await app.drain();
  const origins = await Promise.all(keys.map((key) => originsOf(app, key)));
  const { domain } = /^live\.(?<domain>.*)$/.exec(origins[0]?.[0] ?? '')?.groups ?? {};
  t.same(origins, [[`live.${domain}`], [`live.2.${domain}`], [`live.3.${domain}`]]);
  for (const [key, submissions] of made) {
    for (const one of submissions) t.match(await verify(app, key, one), { verdict: 'verified' });
    const { json } = await read(app, key, '/v1/attestations');
    t.same(
      json.data.map(({ id }: { id: string }) => id),
      submissions.map(({ id }) => id).reverse(),
    );
    t.equal((await read(app, key, '/v1/batches')).json.data.length > 0, true);
  }
  const policy = await fetch(`${app.baseUrl}/verify/policy`);
  t.match(await policy.text(), /^# log live\.3\./m);
  const [, second] = made[1] ?? [];
  const { status } = await read(app, keys[0], `/v1/attestations/${second?.[0]?.id}`);
  t.equal(status, 404, "another project's");
  const listed = (await trustRootsOf(app)).transparency_logs as { origin: string; url: string }[];
  const live = listed.filter(({ origin }) => origin.startsWith('live.'));
  t.same(live.map(({ origin }) => origin).sort(), origins.flat().sort());
  for (const { url, origin } of live) {
    const checkpoint = await (await fetch(`${app.verifyUrl}/log/${url.split('/').at(-1)}/checkpoint`)).text();
    t.match(checkpoint, new RegExp(`^${origin.replaceAll('.', '\\.')}\n2\n`));
  }
});

t.test('the environment that is not named has one log, and keys of a project share its log', async (t) => {
  const { app, keys } = await threeProjects(t);
  const [, owner] = keys;
  const inTest = await newKey(app, { projectId: owner.projectId, environment: Environment.TEST });
  const other = await newKey(app, { projectId: owner.projectId });
  await submit(app, inTest);
  await submit(app, owner, { 'idempotency-key': 'once' });
  await submit(app, other);
  const [live = '', test = '', ...none] = await originsOf(app, owner);
  t.same([live.slice(0, 7), test.slice(0, 5), none], ['live.2.', 'test.', []]);
  const { json } = await read(app, owner, '/v1/attestations');
  t.equal(json.data.length, 2);
});

t.test('logs stay without the setting, and projects from before it stay in the first', async (t) => {
  const installation = await makeInstallation(t);
  // It has no worker: jobs for its logs would be left to those of other tests.
  installation.env.NATS_URL = 'nats://127.0.0.1:1';
  const pool = installation.openPool();
  const submitTo = async (url: string, apiKey: string) => {
    t.equal((await send(url, apiKey, newCreation())).status, 201);
  };
  const lanesOf = async (apiKeys: readonly string[]) => {
    const rows = await pool<{ last4: string; lanes: number[] }[]>`
      SELECT k.last4, array_agg(DISTINCT l.lane) AS lanes FROM api_key k
      JOIN named_submission s ON s.project_id = k.project_id JOIN log l ON l.id = s.log_id GROUP BY k.last4`;
    return apiKeys.map((key) => rows.find(({ last4 }) => key.endsWith(last4))?.lanes.join());
  };
  const first = await installation.startApi();
  const early = await makeUnlimitedKey(pool);
  await submitTo(first.baseUrl, early);
  installation.env.LOGS = LOGS;
  const second = await installation.startApi();
  const late = [await makeUnlimitedKey(pool), await makeUnlimitedKey(pool), await makeUnlimitedKey(pool)];
  for (const key of [early, ...late]) await submitTo(second.baseUrl, key);
  // It was started before there were several.
  for (const key of [early, ...late]) await submitTo(first.baseUrl, key);
  delete installation.env.LOGS;
  const third = await installation.startApi();
  for (const key of [early, ...late]) await submitTo(third.baseUrl, key);
  t.same(await lanesOf([early, ...late]), ['1', '1', '2', '3']);
});

t.test('a lane has epochs of its own', async (t) => {
  const { app, keys } = await threeProjects(t);
  const [first, second] = keys;
  await submit(app, first);
  await submit(app, second);
  await app.drain();
  const logs = logManager(app.pool, await openRegister(app.config.checkpointRegister));
  await t.rejects(logs.newEpoch('live', { lane: 4 }), /has no log 4/);
  await app.pool`UPDATE log SET frozen_at = now(), frozen_reason = 'a test' WHERE lane = 2`;
  const { origin, lane, epoch } = await logs.newEpoch('live', { lane: 2 });
  t.match([origin, lane, epoch], [/^live\.2-2\./, 2, 2]);
  const states = await logs.status();
  t.same(states.map(({ lane, epoch, state }) => `${lane} ${epoch} ${state}`).sort(), [
    '1 1 ok',
    '1 1 ok',
    '2 1 closed',
    '2 2 ok',
    '3 1 ok',
  ]);
  const readPage = async () => (await fetch(`${app.verifyUrl}/log/live.2`)).json();
  await until(
    'the process knows of it',
    async () => ((await readPage()) as { state: string }).state === 'closed',
  );
  t.match(await readPage(), { successor: { origin } });
  const made = await submit(app, second);
  await submit(app, first);
  await app.drain();
  t.equal((await originsOf(app, first)).length, 1);
  t.equal((await originsOf(app, second)).length, 2);
  t.match(await verify(app, second, made), { verdict: 'verified' });
});

t.test('the next epoch is one that no other database has begun', async (t) => {
  const { app, keys } = await threeProjects(t);
  await submit(app, keys[0]);
  await app.drain();
  const register = await openRegister(app.config.checkpointRegister);
  const log = (await listLogs(app.pool)).find(({ origin }) => origin.startsWith('live.log.'))!;
  const batch = (await findNewestPublishedBatch(app.pool, log.id))!;
  const entry = registerEntry(app.pool, log, batch);
  for (const epoch of [2, 3]) {
    const origin = log.origin.replace('live.', `live-${epoch}.`);
    t.equal(await register.replace(undefined, { ...entry, origin }), true);
  }
  await app.pool`UPDATE log SET frozen_at = now(), frozen_reason = 'a test' WHERE id = ${log.id}`;
  const begun = await logManager(app.pool, register).newEpoch('live');
  t.match(begun, { origin: /^live-4\./, epoch: 4, state: 'ok' });
});
