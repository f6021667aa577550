/** The package `attestation-service` as it is installed by whoever has a Postgres of his own. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { attestFolder } from '../cli/sets/attested-folder.js';
import { ARTIFACT } from '../proof/sample.js';
import { good, trustRoots } from '../proof/verifying.js';
import { testDatabase } from '../support/servers/shared-servers.js';
import { type Ended, installPackage, type Project } from './install.js';

let project: Project;

t.before(async () => {
  project = await installPackage(t, 'attestation-service', ['--omit=optional']);
});

function attest(args: readonly string[], env?: Record<string, string>): Promise<Ended> {
  return project.run(join(project.dir, 'node_modules/.bin/attest'), args, env);
}

t.test('it installs no other package, and has the licences of bundled ones', async (t) => {
  const names = project.installed.map((path) => path.replace(/^.*node_modules\//, ''));
  t.same(names, ['attestation-service']);
  const packed = join(project.dir, 'node_modules/attestation-service/dist');
  const bundled = {
    attest: ['fastify', 'postgres', 'nats'],
    web: ['preact', '@tanstack/react-query', '@noble/hashes'],
  };
  for (const [folder, names] of Object.entries(bundled)) {
    const licenses = await readFile(join(packed, folder, 'THIRD_PARTY_LICENSES'), 'utf8');
    for (const name of names) t.match(licenses, new RegExp(`^${name} \\d.*\\n\\n.*\\S`, 'm'), name);
  }
  const manifest = await readFile(join(project.dir, 'node_modules/attestation-service/package.json'), 'utf8');
  t.notOk('scripts' in JSON.parse(manifest));
});

t.test('attest prints its version and its help', async (t) => {
  const { version } = JSON.parse(await readFile('package.json', 'utf8'));
  t.same(await attest(['--version']), { code: 0, stdout: `${version}\n`, stderr: '' });
  t.match(await attest(['--help']), {
    code: 0,
    stdout: /^Usage: attest .*^ {2}verify /ms,
    stderr: '',
  });
});

t.test('attest verify verifies offline', async (t) => {
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
});

t.test('attest verify hashes a folder, on threads whose program is in the package', async (t) => {
  const { art, evidence } = await attestFolder(t, ['a', 'b/c']);
  t.match(await attest(['verify', art, ...evidence]), { code: 0, stdout: /^Files: 2 ok, 0 changed/ });
});

t.test('attest api without settings names those that are missing', async (t) => {
  const { code, stdout, stderr } = await attest(['api']);
  t.match({ code, stdout }, { code: 2, stdout: '' });
  t.match(stderr, /^error: \d settings are wrong:\n(?: {2}[A-Z_]+ is not set, expected .*\n)+$/);
  t.match(stderr, 'DATABASE_URL is not set');
});

t.test('attest migrate finds its migrations', async (t) => {
  const env = { DATABASE_URL: await testDatabase(t, { empty: true }) };
  t.match(await attest(['migrate'], env), { code: 0 });
});

t.test('attest up without a Postgres names the package to install', async (t) => {
  const { code, stderr } = await attest(['up', '--port', '0', '--ops-port', '0', '--data-dir', 'data']);
  t.equal(code, 1);
  t.match(
    stderr,
    /^starting PostgreSQL\nerror: There is no Postgres in node_modules .*without --omit=optional.*DATABASE_URL\.\n$/,
  );
});
