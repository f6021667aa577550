/** The package `@attestation-service/client` in projects of its users: Node, bundlers, browsers. */
import { createHash, randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build, type Metafile } from 'esbuild';
import t from 'tap';
import { filesIn } from '../../src/generate/files-in.js';
import { formatSecret, signatureHeaders } from '../../src/server/webhooks/delivery/sign.js';
import { ARTIFACT } from '../proof/sample.js';
import { good, trustRoots } from '../proof/verifying.js';
import { codeBlocks } from '../support/source/pages.js';
import { type Ended, installPackage, type Project } from './install.js';

const PRIMITIVES = 'node_modules/@attestation-service/client/src/proof/bytes/primitives';
const ROOT = process.cwd();
/** The compiler that builds this checkout. */
const COMPILER = join(ROOT, 'node_modules/@typescript/native/lib/tsc.js');

/** What a user of Node writes: bundle and webhook come as files, the verdicts go to standard output. */
const NODE_PROGRAM = `
import { readFile } from 'node:fs/promises';
import { verifyBundle, verifyWebhook, WebhookVerificationError, type Verification } from '@attestation-service/client';

const { bundle, artifact, trustRoots, webhook } = JSON.parse(await readFile('input.json', 'utf8'));
const options = { trustRoots, now: new Date() };
const verified: Verification = await verifyBundle(bundle, { ...options, artifact: Buffer.from(artifact, 'base64') });
const changed = await verifyBundle(bundle, { ...options, artifact: Buffer.from('another artifact') });

function deliver(body: string): string {
  try {
    return verifyWebhook(body, webhook.headers, webhook.secret).id;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return error.code;
    throw error;
  }
}
console.log(JSON.stringify([verified.verdict, changed.verdict, deliver(webhook.body), deliver(webhook.body + ' ')]));
`;

const CALLS = `
import { AttestationError, createClient } from '@attestation-service/client';

export async function show(baseUrl: string, apiKey: string): Promise<string> {
  try {
    const client = createClient({ baseUrl, apiKey });
    const { status } = await client.attestations.get('sub_1', { signal: AbortSignal.timeout(1_000) });
    return String(status);
  } catch (error) {
    return error instanceof AttestationError ? error.code : 'unknown';
  }
}
`;

const VERIFICATION = `${CALLS}
export { verifyBundle, verifyWebhook } from '@attestation-service/client';
`;

const STRICT = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
  skipLibCheck: false,
  target: 'ES2023',
};

const COMPILED = { code: 0, stdout: '', stderr: '' };

let project: Project;

t.before(async () => {
  project = await installPackage(t, '@attestation-service/client');
});

/** Compiles with these options, files beside their sources. */
async function compile(compilerOptions: object, files: Record<string, string>): Promise<Ended> {
  for (const [name, code] of Object.entries(files)) await writeFile(join(project.dir, name), code);
  const config = { compilerOptions: { ...STRICT, ...compilerOptions }, files: Object.keys(files) };
  await writeFile(join(project.dir, 'tsconfig.json'), JSON.stringify(config));
  return project.run(process.execPath, [COMPILER]);
}

/** Bundles for a browser, minified. Returns the size as it is sent, what was read, and what of it is in the bundle. */
async function bundle(
  contents: string,
): Promise<{ gzipped: number; inputs: Metafile['inputs']; used: string[] }> {
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir: project.dir, loader: 'ts' },
    absWorkingDir: project.dir,
    bundle: true,
    minify: true,
    platform: 'browser',
    format: 'esm',
    write: false,
    metafile: true,
  });
  const [output] = Object.values(metafile.outputs);
  const used = Object.keys(output!.inputs);
  return { gzipped: gzipSync(outputFiles[0]!.contents).length, inputs: metafile.inputs, used };
}

t.test('it is at most 9 packages and 15 MB, none of which runs anything at installation', async (t) => {
  t.ok(project.installed.length <= 9, project.installed.join(', '));
  const files = filesIn(join(project.dir, 'node_modules'));
  const sizes = await Promise.all(files.map(async (path) => (await readFile(path)).length));
  const size = sizes.reduce((sum, length) => sum + length, 0);
  t.ok(size <= 15_000_000, `${size} bytes`);
  for (const path of project.installed) {
    const manifest = await readFile(join(project.dir, path, 'package.json'), 'utf8');
    const { scripts = {} } = JSON.parse(manifest) as { scripts?: object };
    t.same(
      Object.keys(scripts).filter((name) => /^(?:pre|post)?install$/.test(name)),
      [],
      path,
    );
  }
});

t.test('a folder is hashed by threads whose program is in the package', async (t) => {
  const program = `import { hashFiles } from '@attestation-service/client';
for await (const { path, sha256 } of hashFiles(process.argv[2])) console.log(path, sha256);`;
  await writeFile(join(project.dir, 'hash.mjs'), program);
  const { stdout, stderr } = await project.run(process.execPath, ['hash.mjs', t.testdir({ a: 'abc' })]);
  t.equal(stderr, '');
  t.equal(stdout, `a ${createHash('sha256').update('abc').digest('hex')}\n`);
});

t.test('a program for Node is correctly typed and verifies bundles and webhooks', async (t) => {
  const key = randomBytes(32);
  const data = { submission_id: 'sub_1', bundle_url: 'https://api.example.com' };
  const event = { id: 'evt_1', type: 'attestation.witnessed', created: '2026-01-01T00:00:00Z', data };
  const body = JSON.stringify(event);
  const headers = signatureHeaders([key], { id: event.id, timestamp: Math.floor(Date.now() / 1000), body });
  const webhook = { body, headers, secret: formatSecret(key) };
  const input = { bundle: good, artifact: Buffer.from(ARTIFACT).toString('base64'), trustRoots, webhook };
  await writeFile(join(project.dir, 'input.json'), JSON.stringify(input));
  const options = { module: 'NodeNext', types: ['node'], typeRoots: [join(ROOT, 'node_modules/@types')] };
  t.same(await compile(options, { 'node.ts': NODE_PROGRAM }), COMPILED);
  const { stdout, stderr } = await project.run(process.execPath, ['node.js']);
  t.equal(stderr, '');
  t.same(JSON.parse(stdout), ['verified', 'not_verified', 'evt_1', 'signature.mismatch']);
});

t.test('a program for browsers is correctly typed without the types of Node', async (t) => {
  const [readme = ''] = await codeBlocks('src/client/README.md', 'ts');
  const options = { module: 'ESNext', moduleResolution: 'Bundler', lib: ['ES2023', 'DOM'], types: [] };
  const files = { 'calls.ts': CALLS, 'verification.ts': VERIFICATION, 'readme.ts': readme };
  t.same(await compile({ ...options, noEmit: true }, files), COMPILED);
});

t.test('a bundle of calls has at most 61 KB, one with verification at most 114 KB, gzipped', async (t) => {
  const calls = await bundle(CALLS);
  const verification = await bundle(VERIFICATION);
  t.ok(calls.gzipped <= 61_000, `${calls.gzipped} bytes`);
  t.ok(verification.gzipped <= 114_000, `${verification.gzipped} bytes`);
  for (const { inputs } of [calls, verification]) {
    const imports = Object.values(inputs).flatMap(({ imports }) => imports);
    t.same(
      imports.filter(({ external, path }) => external || path.startsWith('node:')),
      [],
    );
    t.ok(`${PRIMITIVES}-web.js` in inputs);
    t.notOk(`${PRIMITIVES}-node.js` in inputs);
  }
  const verifiers = ({ used }: { used: string[] }) =>
    used.filter((path) => path.endsWith('src/proof/verify/verify.js'));
  t.same([verifiers(calls).length, verifiers(verification).length], [0, 1]);
});
