/** The package `@attestation-service/cli`: the command line without the server. */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { SERVER_COMMANDS } from '../../src/cli/server-commands.js';
import { filesIn } from '../../src/generate/files-in.js';
import { attestFolder } from '../cli/sets/attested-folder.js';
import { ARTIFACT } from '../proof/sample.js';
import { good, trustRoots } from '../proof/verifying.js';
import { type Ended, installPackage, type Project } from './install.js';

const MAX_BYTES = 3_000_000;

let project: Project;
let packed: string;

t.before(async () => {
  project = await installPackage(t, '@attestation-service/cli', ['--offline']);
  packed = join(project.dir, 'node_modules/@attestation-service/cli');
});

function attest(args: readonly string[], env?: Record<string, string>): Promise<Ended> {
  return project.run(join(project.dir, 'node_modules/.bin/attest'), args, env);
}

t.test('it has at most 3 MB, and installs no other package', async (t) => {
  t.same(project.installed, ['node_modules/@attestation-service/cli']);
  const sizes = await Promise.all(filesIn(packed).map(async (path) => (await stat(path)).size));
  const size = sizes.reduce((sum, bytes) => sum + bytes, 0);
  t.ok(size <= MAX_BYTES, `${size} bytes`);
  const manifest = JSON.parse(await readFile(join(packed, 'package.json'), 'utf8'));
  t.same(
    Object.keys(manifest).filter((name) => /dependencies|scripts/i.test(name)),
    [],
  );
});

t.test('it has its licence, and those of what is bundled', async (t) => {
  t.equal(await readFile(join(packed, 'LICENSE'), 'utf8'), await readFile('LICENSE', 'utf8'));
  const bundled = { attest: ['commander', 'undici', 'micro-eth-signer'], web: ['preact', '@noble/hashes'] };
  for (const [folder, names] of Object.entries(bundled)) {
    const licenses = await readFile(join(packed, 'dist', folder, 'THIRD_PARTY_LICENSES'), 'utf8');
    for (const name of names) t.match(licenses, new RegExp(`^${name} \\d.*\\n\\n.*\\S`, 'm'), name);
    t.notMatch(licenses, /^(?:fastify|postgres|nats) \d/m);
  }
});

t.test('every command of its help can be called, and none of them is one of the server', async (t) => {
  const { version } = JSON.parse(await readFile('package.json', 'utf8'));
  t.same(await attest(['--version']), { code: 0, stdout: `${version}\n`, stderr: '' });
  const { code, stdout } = await attest(['--help']);
  t.equal(code, 0);
  const names = [...stdout.matchAll(/^ {2}([a-z][a-z-]*) {2,}\S/gm)].map(([, name = '']) => name);
  t.ok(['submit', 'verify', 'audit', 'keys', 'exports'].every((name) => names.includes(name)));
  t.notOk(names.some((name) => SERVER_COMMANDS.has(name)));
  for (const name of names)
    t.match(await attest([name, '--help']), { code: 0, stdout: /^Usage: attest / }, name);
});

t.test('a command of the server ends with one line that names its package', async (t) => {
  t.ok(SERVER_COMMANDS.has('up'));
  for (const args of [
    ...[...SERVER_COMMANDS.keys()].map((name) => [name]),
    ['up', '--help'],
    ['help', 'up'],
  ]) {
    const { code, stdout, stderr } = await attest(args);
    t.match({ code, stdout }, { code: 2, stdout: '' }, args.join(' '));
    t.match(stderr, /^error: attest \S+ is in the package .*npm install -g attestation-service\n$/);
  }
  const { stderr } = await attest(['up', '--json']);
  t.match(JSON.parse(stderr), { error: { code: 'command.usage' } });
  t.match(await attest(['upp']), { code: 2, stderr: /^error: unknown command 'upp'\n/ });
});

t.test('attest verify verifies files and folders offline', async (t) => {
  const files = { artifact: ARTIFACT, other: 'another artifact' };
  const documents = { 'bundle.json': JSON.stringify(good), 'roots.json': JSON.stringify(trustRoots) };
  for (const [name, content] of Object.entries({ ...files, ...documents }))
    await writeFile(join(project.dir, name), content);
  const args = ['--bundle', 'bundle.json', '--trust-roots', 'roots.json'];
  t.match(await attest(['verify', 'artifact', ...args]), {
    code: 0,
    stdout: 'This artifact was attested under',
  });
  t.match(await attest(['verify', 'other', ...args]), { code: 1 });
  const { art, evidence } = await attestFolder(t, ['a', 'b/c']);
  t.match(await attest(['verify', art, ...evidence]), { code: 0, stdout: /^Files: 2 ok, 0 changed/ });
});

t.test('attest verify-page writes the page of the package', async (t) => {
  await writeFile(join(project.dir, 'roots.json'), JSON.stringify(trustRoots));
  const { code, stdout } = await attest(['verify-page', '--trust-roots', 'roots.json']);
  t.equal(code, 0);
  t.match(stdout, /^<!doctype html>.*<script type="text\/plain" id="program">/s);
});

t.test('attest submit calls a service, and reports one that is not there', async (t) => {
  await writeFile(join(project.dir, 'report.json'), '{}');
  const env = { ATTEST_URL: 'http://127.0.0.1:1', ATTEST_API_KEY: 'svc_test_none', HOME: project.dir };
  const { code, stdout, stderr } = await attest(['submit', 'report.json'], env);
  t.equal(stdout, '');
  t.not(code, 0);
  t.match(stderr, /^error: /);
});
