/** Exports from the command that creates them to the command that verifies the copy, for each kind of destination. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { ulid } from 'ulid';
import { DestinationKind } from '../../gen/attestation/v1/exports_pb.js';
import type { Pool } from '../../src/server/database/connect.js';
import { createDestinations } from '../../src/server/exports/destinations/destinations.js';
import { openGcsWith } from '../../src/server/exports/destinations/gcs/open-gcs.js';
import { insertExport } from '../../src/server/exports/store/exports.js';
import { encryptSecret } from '../../src/server/keys/encryption.js';
import { deriveKeyRing } from '../../src/server/keys/key-ring.js';
import { makeProject } from '../../src/server/process/first-keys.js';
import { createTrustRootsReader } from '../../src/server/public/trust-roots.js';
import { submit } from '../server/rpc/submitting.js';
import { type App, startApp } from '../support/app.js';
import { runHere } from '../support/calling/run-cli.js';
import { newKey } from '../support/calling/test-keys.js';
import { startAzurite } from '../support/exports/azurite.js';
import { objectsOf } from '../support/exports/exports.js';
import { BUCKET as GCS_BUCKET, makeGcsContext, setGcsScene } from '../support/exports/gcs/open-bucket.js';
import { GOOD_TOKEN, startGitHttps } from '../support/exports/git/https-server.js';
import { makeRepositoriesDirectory, makeRepository } from '../support/exports/git/repositories.js';
import { BUCKET, OWNER, startStore } from '../support/exports/s3/fixture.js';
import { GIT } from '../support/foreign/git.js';
import { drain, makeWitness, openPipeline } from '../support/pipeline.js';
import { submitFor } from '../support/webhooks/webhooks.js';

const run = promisify(execFile);

type Report = { verdict: string };

async function makeFolder(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'attest-copy-'));
  t.teardown(() => rm(folder, { recursive: true }));
  return folder;
}

/** A file with this text, for a flag. */
async function fileWith(t: Test, text: string): Promise<string> {
  const file = join(await makeFolder(t), 'secret');
  await writeFile(file, text);
  return file;
}

/** Creates an export by the command line, with a project's key. */
async function create(app: App, { key }: { key: string }, args: readonly string[]) {
  const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: key };
  const attest = async (...command: string[]) => {
    const { code, stdout, stderr } = await runHere(command, { env });
    if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}: ${stderr}`);
    return stdout;
  };
  const [id = ''] = (await attest('exports', 'create', ...args)).split(' ');
  return { id, attest };
}

/** Writes the manifests that are due within minutes now. */
async function writeManifests({ pool }: { pool: Pool }, settle: () => Promise<void>): Promise<void> {
  await pool`UPDATE export_manifest SET due_at = clock_timestamp()`;
  await pool`UPDATE export SET due_at = clock_timestamp() WHERE status <> 3`;
  await settle();
}

/** Writes objects as files below a folder. */
async function download(folder: string, objects: Iterable<[name: string, bytes: Uint8Array]>): Promise<void> {
  for (const [name, bytes] of objects) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), bytes);
  }
}

/** Verifies a copy offline, with a copy of the trust roots. */
async function assertVerified(t: Test, pool: Pool, folder: string, what: string): Promise<string> {
  const reader = createTrustRootsReader(pool, () => 'http://localhost/verify', Date.now);
  const trustRoots = join(await makeFolder(t), 'trust_roots.json');
  await writeFile(trustRoots, (await reader.read()).json().bytes);
  const args = ['verify', '--export', folder, '--trust-roots', trustRoots];
  const { code, stdout, stderr } = await runHere([...args, '--json'], { env: {} });
  t.match(
    { code, verdict: (JSON.parse(stdout || '{}') as Report).verdict },
    { code: 0, verdict: 'verified' },
    `${what} ${stderr}${code === 0 ? '' : stdout}`,
  );
  return stdout;
}

t.test('a copy in S3 verifies offline, also after a redaction', async (t) => {
  const app = await startApp(t);
  const store = await startStore(t);
  const owner = await newKey(app);
  const { secretAccessKey, accessKeyId } = OWNER;
  const secret = await fileWith(t, secretAccessKey);
  const { id, attest } = await create(app, owner, [
    ...['s3', '--bucket', BUCKET, '--prefix', 'ci', '--endpoint', store.url],
    ...['--access-key-id', accessKeyId, '--secret-access-key-file', secret],
  ]);
  const made = [await submit(app, owner), await submit(app, owner)];
  await app.drain();
  await submit(app, owner);
  await app.drain();
  await writeManifests(app, app.drain);
  const folder = await makeFolder(t);
  await download(folder, await objectsOf(store, id));
  await assertVerified(t, app.pool, folder, 'the copy');
  await attest('redact', made[0]!.id, '--yes');
  await app.drain();
  await writeManifests(app, app.drain);
  const objects = await objectsOf(store, id);
  const text = Buffer.concat([...objects.values()]).toString();
  t.match(text, /"metadata_state":"redacted"/);
  t.notMatch(text, made[0]!.salt);
  t.match(text, made[1]!.salt);
  await download(folder, objects);
  await assertVerified(t, app.pool, folder, 'the copy with a redacted submission');
});

t.test('a clone of a git repository verifies offline', async (t) => {
  const root = await makeRepositoriesDirectory(t);
  const server = await startGitHttps(t, root);
  const repository = await makeRepository(root, 'attestations.git');
  const app = await startApp(t, {
    env: { NODE_EXTRA_CA_CERTS: server.caFile, PATH: process.env.PATH ?? '' },
  });
  const owner = await newKey(app);
  const token = await fileWith(t, GOOD_TOKEN);
  const url = `${server.origin}/attestations.git`;
  await create(app, owner, ['git_repo', '--repository', url, '--token-file', token, '--prefix', 'ci']);
  const { id } = await submit(app, owner);
  await app.drain();
  await writeManifests(app, app.drain);
  const folder = await makeFolder(t);
  await run(GIT, ['clone', '--quiet', repository.path, folder]);
  await assertVerified(t, app.pool, folder, 'the clone');
  const { stdout } = await run(GIT, ['-C', folder, 'grep', '-l', id]);
  t.match(stdout, /^ci\/exp_\w+\/live\/\S+\.jsonl\n$/);
});

t.test('a copy in Azure Blob Storage verifies offline', async (t) => {
  const azurite = await startAzurite(t);
  const container = azurite.owner.getContainerClient('attestations');
  await container.create();
  const app = await startApp(t);
  const owner = await newKey(app);
  const sas = await fileWith(t, azurite.sas('attestations'));
  await create(app, owner, [
    ...['azure_blob', '--account-url', azurite.url, '--container', 'attestations'],
    ...['--sas-token-file', sas, '--compression', 'gzip'],
  ]);
  await submit(app, owner);
  await app.drain();
  await writeManifests(app, app.drain);
  const folder = await makeFolder(t);
  const objects: [string, Buffer][] = [];
  for await (const { name } of container.listBlobsFlat()) {
    if (!name.endsWith('/probe'))
      objects.push([name, await container.getBlobClient(name).downloadToBuffer()]);
  }
  t.match(objects.map(([name]) => name).sort(), [/\.jsonl\.gz$/, /\/manifest\.json$/]);
  await download(folder, objects);
  await assertVerified(t, app.pool, folder, 'the copy');
});

t.test('completed batches are in Google Cloud Storage, with a manifest', async (t) => {
  const { server } = await setGcsScene(t);
  const test = await openPipeline(t, [await makeWitness(t, 'w')]);
  const projectId = await makeProject(test.pool, 'a project');
  const account = `p-${projectId.slice('prj_'.length).toLowerCase()}@customer.iam.gserviceaccount.com`;
  server.tokens.allowImpersonation(account);
  server.bucket(GCS_BUCKET).grants.set(account, new Set(['get', 'create', 'delete']));
  const destinations = createDestinations((row) =>
    openGcsWith(
      { apiEndpoint: server.url, iamEndpoint: server.url },
      makeGcsContext({
        exportId: row.id,
        projectId: row.projectId,
        destination: { serviceAccount: account },
      }),
    ),
  );
  t.teardown(destinations.close);
  const pipeline = test.another({ exports: { ...test.pipeline.exports, destinations } });
  const id = `exp_${ulid()}`;
  const secrets = encryptSecret(deriveKeyRing(test.secretKeys, 'encryption'), '{}', id);
  const destination = { kind: DestinationKind[DestinationKind.GCS], bucket: GCS_BUCKET, prefix: 'copies' };
  const row = { id, projectId, environment: 1, destination, secrets, schema: null, compression: 1, start: 1 };
  await test.pool.begin((tx) => insertExport(tx, row, 50));
  const sent = await submitFor({ ...test, pipeline }, projectId, 3);
  await drain(pipeline);
  await writeManifests(test, () => drain(pipeline));
  const objects = [...server.bucket(GCS_BUCKET).objects.values()].map(
    ({ name, content = Buffer.alloc(0) }): [string, Buffer] => [name, content],
  );
  t.match(objects.map(([name]) => name).sort(), [/\.jsonl$/, /\/manifest\.json$/]);
  const [[, object = Buffer.alloc(0)] = []] = objects.filter(([name]) => name.endsWith('.jsonl'));
  const lines = object.toString().split('\n').filter(Boolean);
  const ids = lines.map((line) => (JSON.parse(line) as { submission: { id: string } }).submission.id);
  t.same(ids.sort(), sent.sort());
});
