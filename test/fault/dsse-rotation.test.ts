/** The key that signs statements is rotated while processes run, and revoked while the witness is away. */
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type Verification, verifyBundle } from '../../src/proof/verify/verify.js';
import { acknowledgement, newCreation, send, startLoad } from '../support/calling/load.js';
import { runProcess } from '../support/calling/run-cli.js';
import type { Acknowledged } from '../support/judging/consistent.js';
import { makeInstallation, makeUnlimitedKey, type ServiceProcess } from '../support/servers/installation.js';
import { until } from '../support/until.js';
import { letWitnessesBeAsked, untilWitnessed } from '../support/wait-for-idle.js';
import { startFaultTsa } from '../support/witnesses/fault-tsa.js';

const tsa = await startFaultTsa(t);
const installation = await makeInstallation(t, {
  env: { WITNESSES: JSON.stringify([tsa.setting('tsa')]) },
});
const pool = installation.openPool();
const apiKey = await makeUnlimitedKey(pool);

const dir = t.testdir();

/** Adds a new key file of live to the setting. @returns the setting as it was before */
function addKey(): string {
  const before = installation.env.DSSE_KEY_FILE ?? '';
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const file = join(dir, `dsse-${before.split(',').length}.pem`);
  writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  installation.env.DSSE_KEY_FILE = `live=${file},${before}`;
  return before;
}

async function submit({ baseUrl }: ServiceProcess): Promise<Acknowledged> {
  const creation = newCreation();
  return acknowledgement(creation, await send(baseUrl, apiKey, creation));
}

const fetchJson = async (url: string) =>
  (await fetch(url, { headers: { authorization: `Bearer ${apiKey}` } })).json();

type Roots = { dsse_signing_keys: { valid_to?: string }[] };

const readTrustRoots = async ({ baseUrl }: ServiceProcess): Promise<Roots> =>
  (await fetchJson(`${baseUrl}/v1/service/trust_roots`)) as Roots;

async function verify(
  { baseUrl }: ServiceProcess,
  { id, artifactSha256 }: Acknowledged,
  trustRoots: unknown,
): Promise<Verification> {
  const bundle = await fetchJson(`${baseUrl}/v1/attestations/${id}/bundle`);
  return verifyBundle(bundle, { trustRoots, artifactSha256, now: new Date() });
}

const dsseKeys = async (...args: string[]) => {
  const ended = await runProcess(['dsse-keys', ...args, '--json'], installation.env);
  if (ended.code !== 0) throw new Error(ended.stderr);
  return JSON.parse(ended.stdout);
};

/** The keys of the submissions with these ids. */
async function keysOf(acknowledged: readonly Acknowledged[]): Promise<number[]> {
  const rows = await pool<{ key: number }[]>`
    SELECT DISTINCT dsse_key_id AS key FROM submission WHERE id = ANY (${acknowledged.map(({ id }) => id)}) ORDER BY 1`;
  return rows.map(({ key }) => key);
}

t.test('every process switches at the same time, without a restart and without an error', async (t) => {
  let processes = [await installation.startApi(), await installation.startWorker()];
  const early = await submit(processes[0]!);
  await untilWitnessed(pool);
  const oldSetting = addKey();
  for (const { stop } of processes) await stop();
  processes = [
    await installation.startApi(),
    await installation.startApi(),
    await installation.startWorker(),
  ];
  const [api, other] = processes as [ServiceProcess, ServiceProcess];
  const published = await readTrustRoots(api);
  const [first, , second] = await dsseKeys('list');
  t.match([first, second], [{ state: 'active' }, { state: 'published', environment: 'live' }]);
  t.equal(published.dsse_signing_keys.length, 3, 'the new key is published');
  const behind = await startWithout(oldSetting);

  const { active_from: activeFrom } = (await dsseKeys('rotate', '--environment', 'live', '--after', '2m'))[0];
  t.ok(Date.parse(activeFrom) > Date.now());
  const [{ at }] = await pool<[{ at: Date }]>`
    UPDATE dsse_key SET active_from = clock_timestamp() + interval '12 seconds'
    WHERE id = ${second.id} RETURNING active_from AS at`;
  const apis = () => [api.baseUrl, other.baseUrl];
  const load = startLoad({ apis, apiKey, clients: 4, most: 100_000 });
  await until('both processes sign with the new key', async () => {
    const last = load.acknowledged.slice(-8);
    return last.length === 8 && (await keysOf(last)).join() === String(second.id);
  });
  await load.stop();
  t.same([...load.statuses.keys()], [201]);
  t.same(await keysOf(load.acknowledged), [first.id, second.id]);
  const late = await pool`
    SELECT FROM submission WHERE dsse_key_id = ${first.id} AND submitted_at > ${at} + interval '1 second'`;
  t.equal(late.length, 0, 'nothing is signed with the old key after that time');

  t.equal((await send(behind.baseUrl, apiKey, newCreation())).status, 503, 'it does not hold the new key');
  const ready = await fetch(`${behind.opsUrl}/readyz`);
  t.equal(ready.status, 503);
  t.match(await ready.text(), /DSSE_KEY_FILE does not hold the key 3, which signs the statements of live /);
  await behind.stop();
  const env = { ...installation.env, PORT: '0', DSSE_KEY_FILE: oldSetting };
  t.match(await runProcess(['api', '--ops-port', '0'], env), {
    code: 1,
    stderr:
      /^error: DSSE_KEY_FILE does not hold the key 3, .*: add its file and restart, or rotate to a key that/,
  });

  await untilWitnessed(pool);
  const roots = await readTrustRoots(api);
  for (const one of [early, load.acknowledged[0]!, load.acknowledged.at(-1)!]) {
    for (const [name, trustRoots] of Object.entries({ roots, published })) {
      const { verdict, summary } = await verify(api, one, trustRoots);
      t.equal(verdict, 'verified', `${name}, ${summary}`);
    }
  }
  for (const { stop } of processes) await stop();
});

/** An API that holds the keys of this setting only. */
async function startWithout(setting: string): Promise<ServiceProcess> {
  const now = installation.env.DSSE_KEY_FILE ?? '';
  installation.env.DSSE_KEY_FILE = setting;
  const api = await installation.startApi();
  installation.env.DSSE_KEY_FILE = now;
  return api;
}

t.test('a revoked key is trusted only for statements witnessed before its revocation', async (t) => {
  addKey();
  const [api, worker] = [await installation.startApi(), await installation.startWorker()];
  const before = await submit(api);
  await untilWitnessed(pool);
  tsa.mood = 'fails';
  const after = await submit(api);
  const [, , stolen, next] = await dsseKeys('list');
  await dsseKeys('rotate', '--environment', 'live', '--after', '2m');
  await pool`UPDATE dsse_key SET active_from = clock_timestamp() WHERE id = ${next.id}`;
  t.match(await dsseKeys('revoke', String(stolen.id)), [{ id: stolen.id, state: 'ended' }]);
  const again = await until('the new key signs', async () => {
    const made = await submit(api);
    return (await keysOf([made])).includes(next.id) ? made : undefined;
  });
  tsa.mood = 'answers';
  await until('everything is witnessed', async () => {
    await letWitnessesBeAsked(pool);
    const [left] = await pool`SELECT FROM batch WHERE status <> 2`;
    return left === undefined;
  });
  await untilWitnessed(pool);
  const roots = await until('the trust roots show it', async () => {
    const read = await readTrustRoots(api);
    return read.dsse_signing_keys[2]?.valid_to === undefined ? undefined : read;
  });
  t.equal((await verify(api, before, roots)).verdict, 'verified');
  t.equal((await verify(api, again, roots)).verdict, 'verified');
  const refused = await verify(api, after, roots);
  t.equal(refused.verdict, 'not_verified');
  t.match(JSON.stringify(refused.steps), /signature\.key_not_valid/);
  for (const { stop } of [api, worker]) await stop();
});
