import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { create, equals, fromBinary, fromJson, type JsonValue } from '@bufbuild/protobuf';
import { CodeGeneratorRequestSchema } from '@bufbuild/protobuf/wkt';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import t, { type Test } from 'tap';
import { AttestationService } from '../../gen/attestation/v1/attestations_pb.js';
import { ProofBundleSchema } from '../../gen/attestation/v1/bundle_pb.js';
import { ErrorDetailSchema } from '../../gen/attestation/v1/errors_pb.js';
import { verifyBundle } from '../../src/proof/verify/verify.js';
import { startApp } from '../support/app.js';
import { runBuf } from '../support/calling/buf.js';
import { newKey } from '../support/calling/test-keys.js';
import { runGrpcPython } from '../support/foreign/python/python-grpc.js';
import { compile } from '../support/source/pages.js';

const execute = promisify(execFile);
const app = await startApp(t);
const owner = await newKey(app);
const readClient = (name: string) => readFile(join('docs/clients', name), 'utf8');

const SERVICE_FILE = 'attestation/v1/attestations.proto';

/** A folder with nothing but the descriptor and these files. */
async function emptyProject(t: Test, files: Record<string, string>): Promise<string> {
  const dir = t.testdir(files);
  const { body } = await app.rest('/descriptor.binpb');
  await writeFile(join(dir, 'descriptor.binpb'), body);
  return dir;
}

/** Asserts that the file that a client saved is the bundle of its artifact. */
async function isVerified(t: Test, dir: string, artifact: string): Promise<void> {
  const { verdict, summary } = await verifyBundle(await readFile(join(dir, `${artifact}.bundle`)), {
    artifact: await readFile(join(dir, artifact)),
    trustRoots: (await app.rest('/verify/trust_roots.json')).json,
    now: new Date(),
  });
  t.equal(verdict, 'verified', summary);
}

/** Asserts that a bundle that another client got is the one that the service has. */
async function isBundle(t: Test, id: string, got: ReturnType<typeof bundleOf>): Promise<void> {
  const [, connect] = app.surfaces();
  const { response } = (await connect?.call(AttestationService.method.getBundle, { id }, owner.key)) ?? {};
  t.ok(equals(ProofBundleSchema, got, fromJson(ProofBundleSchema, response as JsonValue)));
}

function bundleOf(bytes: Uint8Array) {
  return fromBinary(ProofBundleSchema, bytes);
}

t.test('Python code generated from the descriptor submits, waits and fetches the bundle', async (t) => {
  const dir = await emptyProject(t, { 'generate.py': await readClient('python/generate.py') });
  await runGrpcPython(['generate.py'], { cwd: dir });
  const artifact = randomBytes(32).toString('hex');
  const script = join(process.cwd(), 'test/e2e/sdk-client.py');
  const { host } = new URL(app.baseUrl);
  const found = JSON.parse(
    await runGrpcPython([script, host, owner.key, artifact, 'bundle.bin'], { cwd: dir, modules: dir }),
  );
  t.match(found, { id: /^sub_/, again: found.id, status: 'SUBMISSION_STATUS_WITNESSED' });
  await isBundle(t, found.id, bundleOf(await readFile(join(dir, 'bundle.bin'))));
  t.match(found.missing, { code: 'NOT_FOUND' });
  t.equal(detailCode(found.missing), 'submission.not_found');
  t.match(found.wrong, { code: 'INVALID_ARGUMENT' }, 'the longest details fit what the C core takes');
  t.equal(detailCode(found.wrong), 'submission.invalid_metadata');

  await writeFile(join(dir, 'artifact'), randomBytes(100));
  await writeFile(join(dir, 'client.py'), await readClient('python/client.py'));
  const env = { ATTEST_TARGET: host, ATTEST_API_KEY: owner.key };
  t.match(await runGrpcPython(['client.py', 'artifact'], { cwd: dir, modules: dir, env }), /^sub_/);
  await isVerified(t, dir, 'artifact');
});

/** The dotted code in a status's details, in base64 as the Python client prints them. */
function detailCode({ details }: { details: string }): string | undefined {
  const headers = new Headers({ 'grpc-status': '3', 'grpc-status-details-bin': details });
  return findTrailerError(headers)?.findDetails(ErrorDetailSchema)[0]?.code;
}

t.test('TypeScript code generated from the descriptor submits, waits and saves the bundle', async (t) => {
  const files = {
    'package.json': '{"type": "module"}',
    'buf.gen.yaml': await readClient('typescript/buf.gen.yaml'),
    'client.ts': await readClient('typescript/client.ts'),
  };
  const dir = await emptyProject(t, files);
  await runBuf(['generate'], {
    cwd: dir,
    path: `${join(process.cwd(), 'node_modules/.bin')}:${process.env.PATH}`,
  });
  t.same(compile([join(dir, 'client.ts')]), [], 'and is correctly typed');
  await writeFile(join(dir, 'artifact'), randomBytes(100));
  const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: owner.key };
  const { stdout } = await execute(process.execPath, ['client.js', 'artifact'], { cwd: dir, env });
  t.match(stdout, /^sub_/);
  await isVerified(t, dir, 'artifact');
});

/** Runs `buf generate` with plugins that write down what they are asked. @returns their names and requests */
async function askPlugins(t: Test, template: string, plugins: readonly string[]) {
  const dir = await emptyProject(t, { 'buf.gen.yaml': template });
  for (const folder of ['asked', 'bin']) await mkdir(join(dir, folder));
  // buf runs a plugin once for each folder of protos.
  const stub = `#!/bin/sh
    if [ "$1" = --version ]; then echo libprotoc 25.3; exit; fi
    cat > "${dir}/asked/$(basename "$0")$(echo "$*" | sed -n 's/.*--\\([a-z]*\\)_out.*/-\\1/p').$$"`;
  for (const name of plugins) {
    await writeFile(join(dir, 'bin', name), stub);
    await chmod(join(dir, 'bin', name), 0o755);
  }
  await runBuf(['generate'], { cwd: dir, path: `${join(dir, 'bin')}:${process.env.PATH}` });
  const asked = await readdir(join(dir, 'asked'));
  return Promise.all(
    asked.map(async (file) => ({
      plugin: file.split('.')[0]!,
      // protoc itself is given files, not a request.
      request:
        file.startsWith('protoc-gen-') || file.startsWith('grpc')
          ? fromBinary(CodeGeneratorRequestSchema, await readFile(join(dir, 'asked', file)))
          : create(CodeGeneratorRequestSchema),
    })),
  );
}

type Asked = Awaited<ReturnType<typeof askPlugins>>;

/** What a plugin has to generate, and the options of one file as it sees them. */
function requestsOf(asked: Asked, plugin: string) {
  const requests = asked.filter((one) => one.plugin === plugin).map(({ request }) => request);
  const files = requests.flatMap(({ protoFile }) => protoFile);
  return {
    generated: requests.flatMap(({ fileToGenerate }) => fileToGenerate),
    optionsOf: (name: string) => files.find((file) => file.name === name)?.options,
  };
}

t.test(
  'the template for Go generates our files only, and imports the others as they are published',
  async (t) => {
    const plugins = ['protoc-gen-go', 'protoc-gen-go-grpc'];
    const asked = await askPlugins(t, await readClient('go/buf.gen.yaml'), plugins);
    for (const plugin of plugins) {
      const { generated, optionsOf } = requestsOf(asked, plugin);
      t.ok(generated.includes(SERVICE_FILE), plugin);
      t.strictSame(
        generated.filter((file) => !file.startsWith('attestation/')),
        [],
        `${plugin}: nothing that other modules register`,
      );
      t.match(optionsOf(SERVICE_FILE), {
        goPackage: /^example\.com\/your\/module\/gen\/go\/attestation\/v1/,
      });
      t.match(optionsOf('google/api/annotations.proto'), {
        goPackage: /^google\.golang\.org\/genproto\/googleapis\/api\/annotations/,
      });
      t.match(optionsOf('buf/validate/validate.proto'), {
        goPackage: /^buf\.build\/gen\/go\/bufbuild\/protovalidate\/protocolbuffers\/go\/buf\/validate/,
      });
    }
  },
);

t.test('the template for Java and Python passes every file to every plugin', async (t) => {
  const plugins = ['protoc-gen-grpc-java', 'grpc_python_plugin'];
  const asked = await askPlugins(t, await readClient('java-python/buf.gen.yaml'), ['protoc', ...plugins]);
  for (const plugin of plugins) {
    const { generated, optionsOf } = requestsOf(asked, plugin);
    t.ok(generated.includes('buf/validate/validate.proto'), `${plugin}: the imports too`);
    t.ok(generated.includes(SERVICE_FILE), plugin);
    t.match(optionsOf(SERVICE_FILE), { javaPackage: 'com.example.attestation.v1' });
  }
  for (const language of ['java', 'python', 'pyi']) {
    t.ok(
      asked.some(({ plugin }) => plugin === `protoc-${language}`),
      language,
    );
  }
});
