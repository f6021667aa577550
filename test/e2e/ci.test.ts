/** The lines of docs/ci.md, run as CI systems run them: in a checkout, with the packed program that its script installs. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, delimiter, join } from 'node:path';
import t, { type Test } from 'tap';
import { writeInstallScript } from '../../src/generate/packages/install-script.js';
import { stageCli } from '../../src/generate/packages/stage-cli.js';
import { makeTarball } from '../../src/generate/packages/tarball.js';
import { type Ended, execute } from '../packages/install.js';
import { newFolder } from '../packages/releases.js';
import { startUp } from '../support/servers/up.js';
import { codeBlocks } from '../support/source/pages.js';
import '../support/foreign/curl.js';
import '../support/foreign/git.js';

const PAGE = 'docs/ci.md';
/** What `npm test` does in the checkout: one test passes, and a picture is written. */
const TESTS = `import { mkdirSync, writeFileSync } from 'node:fs';
mkdirSync('shots', { recursive: true });
writeFileSync('shots/home.txt', 'home ' + Date.now());
writeFileSync('report.xml', '<testsuite name="shop" tests="1"><testcase classname="cart" name="counts"/></testsuite>');
`;

/** The lines that a job of GitHub Actions (\`run\`), GitLab (\`script\`) or Jenkins (\`sh\`) runs. */
function linesOf(block: string): string {
  const jenkins = [...block.matchAll(/^ *sh '(.*)'$/gm)].map(([, line]) => line);
  const steps = [...block.matchAll(/^( *)- run: (?:\|\n((?:\1 {4}.*\n)+)|(.*)\n)/gm)];
  const script = /^ {2}script:\n((?: {4}- .*\n)+)/m.exec(block)?.[1] ?? '';
  const gitlab = script.split('\n').map((line) => line.replace(/^ {4}- /, ''));
  return [...jenkins, ...steps.map(([, , many, one]) => many ?? one), ...gitlab].join('\n').trim();
}

/** Serves the packed program and its script. Returns the address. */
async function serveRelease(t: Test): Promise<string> {
  const root = process.cwd();
  const out = newFolder(t);
  const { path: tarball } = await makeTarball(stageCli, { root, out });
  const files = [tarball, writeInstallScript({ root, out }, tarball)];
  const server = createServer((request, response) => {
    const file = files.find((path) => request.url === `/${basename(path)}`);
    response.writeHead(file === undefined ? 404 : 200).end(file && readFileSync(file));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A checkout with tests, a remote and files of a release. */
function checkOut(t: Test): string {
  const dir = newFolder(t);
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ scripts: { test: 'node test.mjs' } }));
  writeFileSync(join(dir, 'test.mjs'), TESTS);
  const git = (...args: string[]) => execFileSync('git', args, { cwd: dir });
  git('init', '--quiet');
  git('remote', 'add', 'origin', 'https://ci:secret@git.example.com/shop.git');
  git('add', '.');
  git('-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '--quiet', '-m', 'a');
  mkdirSync(join(dir, 'dist'));
  for (const name of ['a.tgz', 'b.tgz']) writeFileSync(join(dir, 'dist', name), name);
  return dir;
}

t.test('each block of the page does what it says', async (t) => {
  const release = await serveRelease(t);
  const dataDir = newFolder(t);
  const service = await startUp(dataDir);
  t.teardown(() => service.stop());
  const { live_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8'));
  const home = newFolder(t);
  const bin = join(home, '.local/bin');
  const env = {
    PATH: [bin, process.env.PATH].join(delimiter),
    HOME: home,
    ATTEST_URL: service.baseUrl,
    ATTEST_API_KEY: key,
    ATTEST_DOWNLOAD_URL: release,
    BUILD: 'ci-4711',
    CI_JOB_URL: 'https://ci.example.com/jobs/1',
  };
  const trustRoots = await (await fetch(`${service.verifyUrl}/trust_roots.json`)).text();
  const run = async (dir: string, lines: string): Promise<Ended> => {
    writeFileSync(join(dir, 'trust_roots.json'), trustRoots);
    const own = lines.replaceAll('RELEASE/', `${release}/`).replaceAll('/usr/local/bin', bin);
    return await execute('bash', ['-e', '-o', 'pipefail', '-c', own], { cwd: dir, env });
  };
  const passes = async (name: string, dir: string, lines: string) => {
    const { code, stdout, stderr } = await run(dir, lines);
    t.equal(code, 0, `${name}: ${stdout}${stderr}`);
  };

  const systems = [...(await codeBlocks(PAGE, 'yaml')), ...(await codeBlocks(PAGE, 'groovy'))];
  t.equal(systems.length, 3);
  for (const block of systems) {
    const lines = linesOf(block);
    t.match(lines, /attest run/);
    const dir = checkOut(t);
    await passes(lines, dir, lines);
    const verify = 'attest verify report.xml --bundle report.bundle.json --trust-roots trust_roots.json';
    await passes(verify, dir, verify);
    t.notMatch(readFileSync(join(dir, 'report.bundle.json'), 'utf8'), /secret/);
  }

  const dir = checkOut(t);
  for (const lines of await codeBlocks(PAGE, 'sh')) await passes(lines, dir, lines);
  t.match(readFileSync(join(dir, 'attest.xml'), 'utf8'), /tests="2"/);
  const altered = newFolder(t);
  cpSync(dir, altered, { recursive: true });
  chmodSync(join(altered, 'dist/a.tgz'), 0o644);
  writeFileSync(join(altered, 'dist/a.tgz'), 'other');
  const verify = (await codeBlocks(PAGE, 'sh')).at(-1) ?? '';
  t.match(await run(altered, verify), { code: 1, stdout: /changed\s+a\.tgz/ });
});
