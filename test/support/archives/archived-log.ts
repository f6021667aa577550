/** A service whose first log of the live environment has all kinds of submissions and has ended, and commands over its database. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import type { Test } from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { endReplacedLogs } from '../../../src/server/attestations/signing/retirement.js';
import { eraseStatement } from '../../../src/server/attestations/submissions/metadata.js';
import { logManager } from '../../../src/server/process/log-manager.js';
import { openRegister } from '../../../src/server/witnessing/register/open-register.js';
import { type App, type AppOptions, startApp } from '../app.js';
import { runHere } from '../calling/run-cli.js';
import { newKey, type TestKey } from '../calling/test-keys.js';

export const ORIGIN = 'live.log.example.com';

const VALID = { schema: 'purl', purl: 'pkg:npm/a-test@1.0.0' };
const INVALID = { schema: 'purl', note: 'not a purl' };
const RESULT = {
  schema: 'intoto.test_result.v0.1',
  result: 'PASSED',
  configuration: [{ name: 'suite', digest: { sha256: 'c0'.repeat(32) } }],
};

/** The keys of an installation, in files, as settings: two of the live log. */
async function makeKeys(t: Test): Promise<Record<string, string>> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-archive-'));
  t.teardown(() => rm(dir, { recursive: true }));
  const write = async (name: string) => {
    const { privateKey } = name.startsWith('dsse')
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('ed25519');
    const path = join(dir, `${name}.pem`);
    await writeFile(path, privateKey.export({ type: 'pkcs8', format: 'pem' }));
    return path;
  };
  const files = async (use: string, names: readonly string[]) =>
    (await Promise.all(names.map(async (name, i) => `${name}=${await write(`${use}-${name}-${i}`)}`))).join();
  return {
    DSSE_KEY_FILE: await files('dsse', ['live', 'test']),
    LOG_KEY_FILE: await files('log', ['live', 'live', 'test']),
  };
}

/** A service, the settings of its keys, and how a command ends over its database. */
export type Installation = {
  app: App;
  keys: Record<string, string>;
  run: (...args: string[]) => Promise<{ code: number | null; stdout: string; stderr: string }>;
};

/** Starts a service with its own database, with these keys or new ones. */
export async function startInstallation(
  t: Test,
  { keys, ...options }: AppOptions & { keys?: Record<string, string> } = {},
): Promise<Installation> {
  const own = keys ?? (await makeKeys(t));
  const app = await startApp(t, { ...options, env: { ...own, ...options.env } });
  const env = { ...own, DATABASE_URL: app.config.databaseUrl, CHECKPOINT_REGISTER: app.register };
  return { app, keys: own, run: (...args) => runHere(args, { env }) };
}

/** Submits, and returns the answer. */
export async function create(app: App, { key }: TestKey, more: JsonObject = {}): Promise<JsonObject> {
  const body = { artifact: { sha256: randomBytes(32).toString('hex') }, metadata: VALID, ...more };
  const { status, json } = await app.rest('/v1/attestations', { apiKey: key, body });
  if (status !== 201) throw new Error(`not created: ${JSON.stringify(json)}`);
  return json;
}

async function change(app: App, { key }: TestKey, id: string, method: string, body?: JsonObject) {
  const { status, json } = await app.rest(`/v1/attestations/${id}`, { apiKey: key, method, body });
  if (status !== 200) throw new Error(`not changed: ${JSON.stringify(json)}`);
}

const idOf = ({ id }: JsonObject) => String(id);

/** Makes submissions of all kinds. @returns their ids by kind */
async function makeKinds(app: App, owner: TestKey) {
  const lenient = { metadata: INVALID, validation: 'lenient' };
  const named = { artifact: { sha256: randomBytes(32).toString('hex'), name: 'größe.tar' } };
  const subjects = [{ name: 'other', sha256: 'ee'.repeat(32) }];
  const isPublic = { metadata: RESULT, statement: 'public', subjects };
  const ids = {
    valid: idOf(await create(app, owner)),
    build: idOf(await create(app, owner, { build: 'ci-4711' })),
    invalid: idOf(await create(app, owner, lenient)),
    corrected: idOf(await create(app, owner, lenient)),
    redacted: idOf(await create(app, owner, { build: 'ci-4712' })),
    corrected_and_redacted: idOf(await create(app, owner, lenient)),
    named: idOf(await create(app, owner, named)),
    public: idOf(await create(app, owner, isPublic)),
    public_redacted: idOf(await create(app, owner, isPublic)),
    erased: idOf(await create(app, owner, isPublic)),
  };
  for (const id of [ids.corrected, ids.corrected_and_redacted])
    await change(app, owner, id, 'PATCH', { metadata: VALID });
  for (const id of [ids.redacted, ids.corrected_and_redacted, ids.public_redacted])
    await change(app, owner, id, 'DELETE');
  await app.pool.begin((tx) => eraseStatement(tx, ids.erased));
  return ids;
}

/** A service with a log that has ended: two projects, all kinds of submissions, several batches. */
export async function makeSource(t: Test, options: AppOptions = {}) {
  const installation = await startInstallation(t, options);
  const { app } = installation;
  const owner = await newKey(app);
  const other = await newKey(app);
  const tester = await newKey(app, { environment: Environment.TEST });
  const release = await app.holdSealing();
  const ids = await makeKinds(app, owner);
  await create(app, tester);
  await release();
  await app.drain();
  const others = [idOf(await create(app, other)), idOf(await create(app, other))];
  await app.drain();
  const last = idOf(await create(app, owner));
  await app.drain();
  await endEpoch(app);
  return { ...installation, owner, other, tester, ids: { ...ids, last }, others };
}

/** Begins the next epoch of the live log with its second key, and ends the one before. */
async function endEpoch(app: App): Promise<void> {
  const register = await openRegister(app.config.checkpointRegister);
  const keys = app.config.secrets.log.live;
  const { createPublicKey } = await import('node:crypto');
  const next = createPublicKey(keys[1] as Parameters<typeof createPublicKey>[0]).export({ format: 'jwk' });
  await logManager(app.pool, register).newEpoch('live', {
    publicKey: Buffer.from(String(next.x), 'base64url'),
  });
  await app.pool`UPDATE log SET created_at = created_at - interval '1 hour' WHERE epoch = 2`;
  const ended = await endReplacedLogs(app.pool);
  if (!ended.includes(ORIGIN)) throw new Error('the log has not ended');
}

/** Another database of an installation, whose first logs are empty, and replaced: the register has them. */
export async function startTarget(t: Test, { app, keys }: Installation): Promise<Installation> {
  const target = await startInstallation(t, { keys, env: { CHECKPOINT_REGISTER: app.register } });
  const logs = logManager(target.app.pool, await openRegister(app.register));
  for (const { origin, environment, state } of await logs.status())
    if (state === 'frozen') await logs.newEpoch(environment, { lane: 1 });
    else throw new Error(`${origin} is ${state}`);
  return target;
}
