/** The calls that the reference shows in three languages, run as they stand there, but for the ids of its examples. */
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { type Known, makeChangeable, makeExports, makeWebhooks } from '../server/rpc/samples.js';
import { submitWitnessed } from '../server/rpc/submitting.js';
import { startApp } from '../support/app.js';
import { newKey } from '../support/calling/test-keys.js';
import { runRequestsPython } from '../support/foreign/python/python-requests.js';
import '../support/foreign/curl.js';
import { trustedToken } from '../support/identities/trusted-token.js';
import { signedStatement } from '../support/scitt/signed-statement.js';
import { compile } from '../support/source/pages.js';

const app = await startApp(t);
const owner = await newKey(app);
const CLIENT = fileURLToPath(new URL('../../src/client/client.js', import.meta.url));

/** What cannot succeed here: storage of Amazon, and a block of Bitcoin. */
const LEFT_OUT = ['createExport', 'downloadBundleOts'];

/** Runs modules one after the other, and fails with all that failed. */
const RUN_MODULES = `const failed = [];
for (const file of process.argv.slice(1)) await import(file).catch((error) => failed.push(file + ': ' + error.stack));
if (failed.length > 0) throw new Error(failed.join('\\n'));`;
const RUN_PYTHON = `import runpy, sys, traceback
failed = False
for file in sys.argv[1:]:
    try:
        runpy.run_path(file)
    except Exception:
        failed = True
        print(file, file=sys.stderr)
        traceback.print_exc()
sys.exit(failed)`;

type Sample = { id: string; code: string };

const { json: document } = await app.rest('/openapi.json');
const { id: submissionId, artifactSha256 } = await submitWitnessed(app, owner);
const { json: submission } = await app.rest(`/v1/attestations/${submissionId}`, { apiKey: owner.key });
const paths = Object.values(document.paths as Record<string, Record<string, { operationId: string }>>);
const operations = paths.flatMap((item) => Object.values(item).map(({ operationId }) => operationId));

/** The text of an element's HTML. */
function textOf(html: string): string {
  const plain = html.replace(/<[^>]*>/g, '');
  const entities: Record<string, string> = { lt: '<', gt: '>', quot: '"', '#39': "'", '#x27': "'", amp: '&' };
  return plain.replace(/&(\w+|#\w+);/g, (entity, name: string) => entities[name] ?? entity);
}

/** The samples of a language, with ids of what there is. */
async function samplesOf(language: string): Promise<Sample[]> {
  const known = await makeKnown();
  const samples: Sample[] = [];
  for (const id of operations.filter((one) => !LEFT_OUT.includes(one))) {
    const page = (await app.rest(`/docs/api/${id}`)).body.toString();
    const [, html] =
      new RegExp(`data-language="${language}"><pre[^>]*><code>(.*?)</code>`, 's').exec(page) ?? [];
    if (html === undefined) throw new Error(`${id} has no example in ${language}`);
    samples.push({ id, code: withIds(id, textOf(html), known) });
  }
  return samples;
}

/** What the samples of one language change or delete is made for them. */
async function makeKnown(): Promise<Known> {
  const [rest] = app.surfaces();
  if (rest === undefined) throw new Error('there is no REST surface');
  return {
    artifactSha256,
    submissionId,
    batchId: String(submission.batch_id),
    token: await trustedToken(t, app, owner.projectId),
    ...(await makeChangeable(rest, owner.key)),
    ...(await makeWebhooks(rest, owner.key)),
    ...(await makeExports(t, rest, owner.key)),
  };
}

function withIds(operation: string, code: string, known: Known): string {
  const submission =
    { updateAttestation: known.correctableId, deleteAttestation: known.redactableId }[operation] ??
    known.submissionId;
  const webhook = operation === 'deleteWebhook' ? known.deletableWebhookId : known.webhookId;
  return code
    .replace(/\bsub_\w{26}/g, submission)
    .replace(/\bbtc_\w{26}/g, known.batchId)
    .replace(/\bwhk_\w{26}/g, webhook)
    .replace(/\bdlv_\w{26}/g, known.deliveryId)
    .replace(/\bexp_\w{26}/g, operation === 'deleteExport' ? known.deletableExportId : known.exportId)
    .replace(/\beyJ[\w.-]+/g, known.token)
    .replaceAll('https://hooks.example.com/', 'http://127.0.0.1:9/');
}

/** A folder with the samples as files, each with the same ending, and the statement that they send. */
function writeSamples(t: Test, samples: readonly Sample[], ending: string): { dir: string; files: string[] } {
  const dir = t.testdir({});
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'statement.cose'), signedStatement());
  const files = samples.map(({ id, code }) => {
    const file = join(dir, `${id}${ending}`);
    writeFileSync(file, code);
    return file;
  });
  return { dir, files };
}

const env = { ATTEST_API_KEY: owner.key };

t.test('the commands for curl succeed', async (t) => {
  const { dir, files } = writeSamples(t, await samplesOf('curl'), '.sh');
  for (const file of files) {
    const shell = `curl() { command curl --silent --show-error --fail-with-body "$@"; }\n. ${file}`;
    const run = promisify(execFile)('sh', ['-e', '-c', shell], { cwd: dir, env: { ...process.env, ...env } });
    const problem = await run.then(
      () => '',
      (error: { stdout: string; stderr: string }) => error.stderr + error.stdout,
    );
    t.equal(problem, '', relative(dir, file));
  }
});

t.test('the programs in TypeScript compile strictly and succeed', async (t) => {
  const samples = await samplesOf('typescript');
  const dir = t.testdir({});
  const client = relative(dir, CLIENT);
  const local = samples.map(({ id, code }) => ({
    id,
    code: code.replace("'@attestation-service/client'", `'${client}'`),
  }));
  const { files } = writeSamples(t, local, '.mts');
  t.strictSame(compile(files), []);
  const modules = files.map((file) => file.replace(/\.mts$/, '.mjs'));
  const args = ['--input-type=module', '-e', RUN_MODULES, ...modules];
  await promisify(execFile)(process.execPath, args, { cwd: dir, env: { ...process.env, ...env } });
});

t.test('the programs in Python succeed', async (t) => {
  const { dir, files } = writeSamples(t, await samplesOf('python'), '.py');
  await runRequestsPython(['-c', RUN_PYTHON, ...files], { cwd: dir, env });
});
