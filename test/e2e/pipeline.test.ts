/**
 * The day of who runs a build: thousands of files, a report and snapshots are attested with a key as `attest up` makes it, by a
 * command that is interrupted and run again; every bundle is kept, and a file that is altered is found.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import t from 'tap';
import { PROGRAM } from '../support/calling/run-cli.js';
import { isLong } from '../support/long.js';
import { startUp } from '../support/servers/up.js';
import { until } from '../support/until.js';

const FILES = isLong ? 5_001 : 601;
/** A PNG of one pixel. */
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const REPORT = `<testsuite name="shop" tests="2" failures="1">
<testcase classname="cart" name="counts"/><testcase classname="cart" name="empties"><failure message="1 != 0"/></testcase>
</testsuite>`;

/** What a command printed, and how it ended. */
type Ended = { code: number | null; lines: string[]; stderr: string };

/** Runs `attest` in a folder; Ctrl-C follows once `interruptWhen` is true. */
async function attest(
  cwd: string,
  line: string,
  { env = {}, interruptWhen }: { env?: Record<string, string>; interruptWhen?: () => boolean } = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [...PROGRAM, ...line.split(' ')], {
    cwd,
    env: { PATH: process.env.PATH, HOME: cwd, ...env },
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (piece: string) => {
    stderr += piece;
  });
  const closed = once(child, 'close');
  const interrupted =
    interruptWhen && until('it is time to interrupt', interruptWhen).then(() => child.kill('SIGINT'));
  const lines: string[] = [];
  for await (const printed of createInterface({ input: child.stdout })) lines.push(printed);
  const [code] = await closed;
  await interrupted;
  return { code, lines, stderr };
}

t.test('a build is attested, kept and verified', async (t) => {
  const dir = t.testdir({ 'report.xml': REPORT });
  const pages = join(dir, 'tests/pages.spec.ts-snapshots');
  for (const folder of [join(dir, 'art'), pages]) mkdirSync(folder, { recursive: true });
  for (let n = 0; n < FILES; n++) writeFileSync(join(dir, `art/${n}.json`), `{"sample": ${n}}\n`);
  for (const page of ['home', 'cart']) writeFileSync(join(pages, `${page}-chromium-linux.png`), PIXEL);

  const service = await startUp(join(dir, 'data'));
  const startedMs = Date.now();
  const { live_key: key } = JSON.parse(readFileSync(join(dir, 'data/credentials.json'), 'utf8'));
  const env = { ATTEST_URL: service.baseUrl, ATTEST_API_KEY: key };
  const each = 'submit art --each --build ci-1 --wait --bundles bundles --timeout 5m';
  // Lines come in one burst when the first file is done last; bundles are a call each.
  const bundles = () => (existsSync(join(dir, 'bundles/art')) ? readdirSync(join(dir, 'bundles/art')) : []);
  const first = await attest(dir, each, { env, interruptWhen: () => bundles().length > FILES / 10 });
  t.equal(first.code, 130, first.stderr);
  t.ok(first.lines.length < FILES, `${first.lines.length} of ${FILES} are printed`);
  const again = await attest(dir, each, { env });
  t.equal(again.code, 0, again.stderr);
  const ids = again.lines.map((line) => line.split(' ')[0]);
  t.equal(new Set(ids).size, FILES);
  for (const line of first.lines) t.ok(ids.includes(line.split(' ')[0]), 'what was recorded has the same ID');
  const listed = await attest(dir, 'list --build ci-1 --output ndjson', { env });
  t.equal(listed.lines.length, FILES, 'nothing was submitted twice');
  t.equal(bundles().length, FILES);

  const report = await attest(dir, 'submit --junit report.xml --wait -o report.bundle.json', { env });
  t.equal(report.code, 0, report.stderr);
  const shots = await attest(dir, 'submit --snapshots tests --wait --bundles shots', { env });
  t.equal(shots.code, 0, shots.stderr);
  writeFileSync(
    join(dir, 'trust_roots.json'),
    await (await fetch(`${service.verifyUrl}/trust_roots.json`)).text(),
  );
  const attestedMs = Date.now();
  await service.stop();

  const trusted = '--trust-roots trust_roots.json';
  const verify = `verify art --bundles bundles ${trusted} --junit attest.xml`;
  const whole = await attest(dir, verify);
  t.equal(whole.code, 0, whole.stderr);
  const verifiedMs = Date.now();
  appendFileSync(join(dir, 'art/7.json'), ' ');
  const altered = await attest(dir, verify);
  t.equal(altered.code, 1);
  t.ok(
    altered.lines.some((line) => /changed\s+7\.json/.test(line)),
    altered.lines.slice(0, 5).join('\n'),
  );
  t.match(readFileSync(join(dir, 'attest.xml'), 'utf8'), /7\.json/);
  t.equal((await attest(dir, `verify report.xml --bundle report.bundle.json ${trusted}`)).code, 0);
  t.equal((await attest(dir, `verify tests --bundles shots ${trusted}`)).code, 0);
  t.ok(existsSync(join(dir, 'shots')));
  const seconds = (from: number, to: number) => Math.round((to - from) / 1000);
  t.comment(`${FILES} files: attested in ${seconds(startedMs, attestedMs)} s,`);
  t.comment(`verified in ${seconds(attestedMs, verifiedMs)} s, by 6 lines`);
});
