/** The foreign programs: where they come from, which versions, and how they are built. */
import { chmod, cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAM } from '../support/calling/run-cli.js';
import { codeBlocks } from '../support/source/pages.js';
import { CLIENT_PACKAGES, installGenerators, OAPI_CODEGEN } from './clients/install.js';
import { run, runOrThrow, type Said } from './command.js';
import { installSources } from './policies/sources.js';

/** This checkout. */
export const CHECKOUT = fileURLToPath(new URL('../../../', import.meta.url));

/** Where everything is installed. */
export const FOLDER = join(CHECKOUT, '.interop');
const BIN = join(FOLDER, 'bin');
/** A copy of `test/interop/go`, into which code is generated. */
export const MODULE = join(FOLDER, 'module');

const CONFORMANCE = 'v1.0.5';

/** Programs of the Go module proxy by name. */
const INSTALLED = [
  { name: 'cosign', path: 'github.com/sigstore/cosign/v3/cmd/cosign', version: 'v3.1.3' },
  {
    name: 'litewitness',
    path: 'filippo.io/torchwood/cmd/litewitness',
    version: 'v0.9.1-0.20260706112420-c22a68158d96',
  },
  { name: 'grpcurl', path: 'github.com/fullstorydev/grpcurl/cmd/grpcurl', version: 'v1.9.3' },
  {
    name: 'connectconformance',
    path: 'connectrpc.com/conformance/cmd/connectconformance',
    version: CONFORMANCE,
  },
  { name: 'opa', path: 'github.com/open-policy-agent/opa', version: 'v1.22.3' },
  { name: 'conftest', path: 'github.com/open-policy-agent/conftest', version: 'v0.71.1' },
  {
    name: 'kyverno-json',
    path: 'github.com/kyverno/kyverno-json',
    version: 'v0.0.4-0.20240730143747-aade3d42fc0e',
  },
  { name: 'oras', path: 'oras.land/oras/cmd/oras', version: 'v1.3.0' },
  { name: 'helm', path: 'helm.sh/helm/v3/cmd/helm', version: 'v3.19.2' },
  { name: 'kubeconform', path: 'github.com/yannh/kubeconform/cmd/kubeconform', version: 'v0.7.0' },
  { name: 'versitygw', path: 'github.com/versity/versitygw/cmd/versitygw', version: 'v1.8.0' },
  OAPI_CODEGEN,
];
/** Where programs of PyPI and of npm are. */
export const PYTHON = join(FOLDER, 'python');
const NPM = join(FOLDER, 'npm');
const FOUNDRY = '1.7.1';
const OLDEST_GO = [1, 26, 8];
const PROGRAMS = [
  'verify-bundle',
  'read-timestamp',
  'read-token',
  'serve-timestamps',
  'serve-registry',
  'check-log',
  'check-policy',
  'check-proof',
  'feed-witness',
  'add-witness-log',
];

/** A PATH on which the installed programs come first. */
export const TOOLS_PATH = `${BIN}:${process.env.PATH}`;

/** A program of `.interop/bin`. */
export function tool(name: string): string {
  return join(BIN, name);
}

/** Throws unless everything is there that cannot be installed from the Go module proxy. */
export async function checkPrerequisites(): Promise<void> {
  for (const [command, flag] of [
    ['go', 'version'],
    ['git', '--version'],
    ['jq', '--version'],
    ['openssl', 'version'],
    ['bash', '--version'],
    ['ssh', '-V'],
    ['javac', '-version'],
    ['mvn', '-version'],
  ] as const) {
    const found = await run(command, [flag]).catch(() => undefined);
    if (found?.code !== 0) throw new Error(`npm run interop needs ${command}, which is not on the PATH`);
  }
  const version = await runOrThrow('go', ['env', 'GOVERSION']);
  const numbers = version.match(/\d+/g)?.map(Number) ?? [];
  const differing = OLDEST_GO.findIndex((oldest, i) => (numbers[i] ?? 0) !== oldest);
  if (differing >= 0 && (numbers[differing] ?? 0) < (OLDEST_GO[differing] ?? 0)) {
    throw new Error(`npm run interop needs Go ${OLDEST_GO.join('.')} or newer; this is ${version.trim()}`);
  }
}

/** Installs what is not there yet, and builds the programs of `test/interop/go` anew; `sources` has repositories as owner/name. */
export async function installTools(sources: string, say: (text: string) => void): Promise<void> {
  await mkdir(BIN, { recursive: true });
  for (const { name, path, version } of INSTALLED) {
    const built = await run('go', ['version', '-m', tool(name)]);
    if (built.output.includes(`mod\t${path.replace(/\/cmd\/.*/, '')}\t${version}\t`)) continue;
    say(`installing ${name} ${version} into .interop/bin; this takes some minutes`);
    await runOrThrow('go', ['install', `${path}@${version}`], { env: { GOBIN: BIN } });
  }
  await installPython();
  await installCast();
  await installSources(FOLDER, BIN, sources);
  for (const [name, line] of Object.entries(await installGenerators(FOLDER, NPM)))
    await writeScript(name, line);
  say('building the programs of test/interop/go into .interop/bin');
  await rm(MODULE, { recursive: true, force: true });
  await cp(join(CHECKOUT, 'test/interop/go'), MODULE, { recursive: true });
  await runOrThrow('go', ['install', 'tool'], { cwd: MODULE, env: { GOBIN: BIN } });
  await build(PROGRAMS);
  const program = PROGRAM.map((part) => `"${part}"`).join(' ');
  await writeScript('attest', `exec "${process.execPath}" ${program} "$@"`);
}

/** Into an environment of their own. */
const PYTHON_PACKAGES = [
  'scitt-cose==0.5.0',
  'sigstore==4.5.1',
  'opentimestamps-client==0.7.2',
  'tuf==7.0.1',
  ...CLIENT_PACKAGES,
];

async function installPython(): Promise<void> {
  const installed = await run(join(PYTHON, 'bin/pip'), ['freeze']).catch(() => undefined);
  if (!PYTHON_PACKAGES.every((name) => installed?.output.includes(name))) {
    await runOrThrow('python3', ['-m', 'venv', PYTHON]);
    await runOrThrow(join(PYTHON, 'bin/pip'), ['install', '--quiet', ...PYTHON_PACKAGES]);
  }
  await writeShim('ots', join(PYTHON, 'bin/ots'));
  await writeShim('openapi-python-client', join(PYTHON, 'bin/openapi-python-client'));
}

/** Foundry's cast, of the version of its anvil. */
async function installCast(): Promise<void> {
  const name = `@foundry-rs/cast-${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`;
  const file = join(NPM, 'node_modules', name, 'bin/cast');
  const said = await run(file, ['--version']).catch(() => undefined);
  if (!said?.output.includes(FOUNDRY)) {
    await mkdir(NPM, { recursive: true });
    await runOrThrow('npm', ['install', '--silent', '--no-audit', '--prefix', NPM, `${name}@${FOUNDRY}`]);
  }
  await writeShim('cast', file);
}

function writeShim(name: string, program: string): Promise<void> {
  return writeScript(name, `exec "${program}" "$@"`);
}

async function writeScript(name: string, line: string): Promise<void> {
  await writeFile(tool(name), `#!/bin/sh\n${line}\n`);
  await chmod(tool(name), 0o755);
}

/** The folder of the protos of Connect's conformance suite, in Go's cache of modules. */
export async function conformanceProtos(): Promise<string> {
  const module = `connectrpc.com/conformance@${CONFORMANCE}`;
  const { Dir } = JSON.parse(await runOrThrow('go', ['mod', 'download', '-json', module])) as { Dir: string };
  return join(Dir, 'proto');
}

/** Builds programs of the module. */
export async function build(programs: readonly string[]): Promise<void> {
  await runOrThrow('go', ['build', '-o', BIN, ...programs.map((name) => `./${name}`)], { cwd: MODULE });
}

/** The shell lines of docs/verifying.md, a script for each block. */
export function verifyingScripts(): Promise<string[]> {
  return codeBlocks(join(CHECKOUT, 'docs/verifying.md'), '');
}

/** Runs lines as a shell does into which they are pasted, except that it ends with the first that fails. */
export function paste(script: string, cwd: string, env: Record<string, string> = {}): Promise<Said> {
  return run('bash', ['-e', '-o', 'pipefail', '-c', script], { cwd, env: { ...env, PATH: TOOLS_PATH } });
}
