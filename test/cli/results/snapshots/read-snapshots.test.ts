/** Folders of snapshots that Playwright, Vitest, Jest and jest-image-snapshot wrote. */
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import t, { type Test } from 'tap';
import { readSnapshots } from '../../../../src/cli/results/snapshots/read-snapshots.js';
import { loadSchemas, validateMetadata } from '../../../../src/server/schema/registry.js';
import { SAMPLES, sha256 } from '../evaluation/reading.js';

const registry = loadSchemas({});

/** Metadata of the snapshots by their paths in the folder, valid by the schema. */
async function describe(t: Test, folder: string, report?: string): Promise<Record<string, JsonObject>> {
  const found: Record<string, JsonObject> = {};
  for (const { file, metadataOf } of await readSnapshots(folder, report)) {
    const metadata = metadataOf(sha256(readFileSync(file)));
    t.strictSame(validateMetadata(registry, metadata), { ok: true, departures: [] }, file);
    found[file.slice(folder.length + 1)] = metadata;
  }
  return found;
}

/** A copy of what Playwright wrote, whose report has the copy's paths. */
function copyPlaywright(t: Test): string {
  const folder = t.testdir();
  cpSync(join(SAMPLES, 'playwright'), folder, { recursive: true });
  const report = join(folder, 'report.json');
  writeFileSync(report, readFileSync(report, 'utf8').replaceAll('/home/user/project', folder));
  return folder;
}

const shaOf = (...path: string[]) => sha256(readFileSync(join(SAMPLES, ...path)));

t.test(
  "Playwright's baselines and results, with project, browser, viewport and test of its report",
  async (t) => {
    const folder = copyPlaywright(t);
    const found = await describe(t, folder, join(folder, 'report.json'));
    const home = 'tests/home.spec.mjs-snapshots/home-desktop-chromium-linux.png';
    const results = 'test-results/home-home-page-desktop-chromium';
    const common = {
      schema: 'ui_snapshot.v1',
      tool: { name: 'playwright', version: '1.65.1' },
      snapshot: { name: 'home' },
      image: { media_type: 'image/png', width: 60, height: 40 },
      project: 'desktop-chromium',
      browser: { name: 'chromium' },
      viewport: { width: 60, height: 40 },
      baseline: { digest: { sha256: shaOf('playwright', home) } },
    };
    t.strictSame(found[home], {
      ...common,
      kind: 'baseline',
      platform: 'linux',
      test: { file: `${relative('.', folder)}/tests/home.spec.mjs`, title: 'home page' },
    });
    t.strictSame(found[`${results}/home-actual.png`], {
      ...common,
      kind: 'actual',
      test: { file: 'home.spec.mjs', title: 'home page' },
      diff: { digest: { sha256: shaOf('playwright', results, 'home-diff.png') } },
    });
    t.strictSame(Object.keys(found), [
      `${results}/home-actual.png`,
      'tests/home.spec.mjs-snapshots/about-us-it-has-text-image-1-desktop-chromium-linux.png',
      'tests/home.spec.mjs-snapshots/dir/deep-desktop-chromium-linux.png',
      'tests/home.spec.mjs-snapshots/greeting-desktop-chromium-linux.txt',
      home,
    ]);
    t.match(found['tests/home.spec.mjs-snapshots/dir/deep-desktop-chromium-linux.png'], {
      snapshot: { name: 'dir/deep' },
    });
  },
);

t.test('without a report, nothing is guessed of project, browser and viewport', async (t) => {
  const found = await describe(t, copyPlaywright(t));
  const { project, browser, viewport, snapshot } =
    found['tests/home.spec.mjs-snapshots/home-desktop-chromium-linux.png'] ?? {};
  t.strictSame([project, browser, viewport], [undefined, undefined, undefined]);
  t.strictSame(snapshot, { name: 'home-desktop-chromium' });
  t.match(found['test-results/home-home-page-desktop-chromium/home-actual.png'], {
    test: { title: 'home-home-page-desktop-chromium' },
  });
});

t.test("Vitest's screenshots, what a test saw instead, and snapshots of text", async (t) => {
  const found = await describe(t, join(SAMPLES, 'vitest'));
  const baseline = 'src/__screenshots__/button.test.js/plain-chromium-linux.png';
  const actual = '.vitest-attachments/src/button.test.js/plain-actual-chromium-linux.png';
  const text = 'src/__snapshots__/button.test.js.snap';
  t.strictSame(Object.keys(found), [actual, baseline, text], 'not the picture of a failure');
  const seen = {
    tool: { name: 'vitest' },
    snapshot: { name: 'plain' },
    browser: { name: 'chromium' },
    platform: 'linux',
    image: { media_type: 'image/png', width: 20, height: 10 },
    baseline: { digest: { sha256: shaOf('vitest', baseline) } },
  };
  t.match(found[baseline], { ...seen, kind: 'baseline', test: { file: /src\/button\.test\.js$/ } });
  const diff = { digest: { sha256: shaOf('vitest', actual.replace('actual', 'diff')) } };
  t.match(found[actual], { ...seen, kind: 'actual', diff });
  t.match(found[text], {
    tool: { name: 'vitest' },
    snapshot: { names: ['button > has markup > named 1', 'button > has markup 1'], count: 2 },
  });
});

t.test("Jest's snapshots of text and images", async (t) => {
  const found = await describe(t, join(SAMPLES, 'jest'));
  t.match(found['__snapshots__/a.test.js.snap'], {
    tool: { name: 'jest' },
    test: { file: /a\.test\.js$/ },
    snapshot: { names: ['text of it 1'], count: 1 },
  });
  const image = '__image_snapshots__/a-test-js-a-box-1-snap.png';
  t.match(found[image], { tool: { name: 'jest-image-snapshot' }, image: { width: 3, height: 2 } });
  const folder = '__image_snapshots__';
  t.match(found[`${folder}/__received_output__/a-test-js-a-box-1-snap-received.png`], {
    kind: 'actual',
    snapshot: { name: 'a-test-js-a-box-1' },
    baseline: { digest: { sha256: shaOf('jest', image) } },
    diff: { digest: { sha256: shaOf('jest', folder, '__diff_output__/a-test-js-a-box-1-snap-diff.png') } },
  });
  t.equal(Object.keys(found).length, 3, 'not the differences');
});

/** A folder of files by their paths. */
function makeFolder(t: Test, files: Readonly<Record<string, string | Buffer>>): string {
  const folder = t.testdir();
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  return folder;
}

t.test('files that are not what their names say have an error that names them', async (t) => {
  const png = readFileSync(
    join(SAMPLES, 'playwright/tests/home.spec.mjs-snapshots/home-desktop-chromium-linux.png'),
  );
  const changed = (at: number, byte: number) => {
    const copy = Buffer.from(png);
    copy.fill(byte, at, at + 4);
    return copy;
  };
  const at = 'a.spec.ts-snapshots/a-linux.png';
  const cases: [problem: RegExp, files: Readonly<Record<string, string | Buffer>>][] = [
    [
      / has no snapshots: no folder \*-snapshots, /,
      { 'a.png': png, 'node_modules/x-snapshots/a-linux.png': png },
    ],
    [/a-linux\.png is no PNG image/, { [at]: '' }],
    [/a-linux\.png is no PNG image/, { [at]: png.subarray(0, 23) }],
    [/a-linux\.png is no PNG image/, { [at]: changed(0, 0x50) }],
    [/a-linux\.png is no PNG image/, { [at]: changed(16, 0) }],
    [/a-linux\.png is no PNG image/, { [at]: changed(20, 0xff) }],
    [/a\.snap has no first line of a snapshot file/, { '__snapshots__/a.snap': 'exports[`a 1`] = `1`;' }],
  ];
  for (const [message, files] of cases) {
    await t.rejects(
      readSnapshots(makeFolder(t, files), undefined),
      { name: 'UsageError', message },
      String(message),
    );
  }
  const linked = makeFolder(t, {});
  symlinkSync('/etc/passwd', join(linked, 'a-actual.png'));
  await t.rejects(readSnapshots(linked, undefined), { name: 'FolderError', message: /link/ });
  await t.rejects(readSnapshots(join(linked, 'nowhere'), undefined), {
    name: 'UsageError',
    message: /nowhere cannot be read: ENOENT/,
  });
  await t.rejects(readSnapshots('/etc/passwd', undefined), {
    name: 'UsageError',
    message: /is not a folder/,
  });
});

t.test('names of text snapshots are unescaped, bounded and counted', async (t) => {
  const exports = Array.from(
    { length: 20_000 },
    (_, i) => `exports[\`a \\\`b\\\` \\\${c} \\\\ ${i}\`] = \`1\`;\n`,
  );
  const text = `// Jest Snapshot v1, https://jestjs.io/docs/snapshot-testing\n\n${exports.join('\n')}`;
  const folder = makeFolder(t, { '__snapshots__/a.test.js.snap': text });
  const { snapshot } = (await describe(t, folder))['__snapshots__/a.test.js.snap'] ?? {};
  const { names, count } = snapshot as { names: string[]; count: number };
  t.equal(count, 20_000);
  t.equal(names[0], `a \`b\` \${c} \\ 0`);
  t.ok(names.length > 100 && JSON.stringify(names).length < 20_000);
  const hostile = `// Vitest Snapshot v1\nexports[\`${'\\`'.repeat(15_000_000)}`;
  const open = makeFolder(t, { '__snapshots__/b.snap': hostile });
  t.match((await describe(t, open))['__snapshots__/b.snap'], { snapshot: { names: [], count: 1 } });
});

t.test('a report that is none has an error, one with odd members does not matter', async (t) => {
  const folder = copyPlaywright(t);
  const report = join(folder, 'odd.json');
  const write = (content: string) => writeFileSync(report, content);
  write('{');
  await t.rejects(readSnapshots(folder, report), { name: 'UsageError', message: /odd\.json is not JSON/ });
  write('{"suites":{}}');
  await t.rejects(readSnapshots(folder, report), { message: /is no JSON report of Playwright/ });
  const deep = `${'{"suites":['.repeat(200)}${']}'.repeat(200)}`;
  write(`{"config":{"projects":[]},"suites":[${deep}]}`);
  await t.rejects(readSnapshots(folder, report), { message: /nested too deeply/ });
  const use = { viewport: { width: -1, height: 'x' }, deviceScaleFactor: 'y', browserName: 3 };
  const config = {
    projects: [{}, 3, { name: 'desktop-chromium' }],
    filteredProjects: [{ name: 'desktop-chromium', use }],
  };
  write(JSON.stringify({ config, suites: [null, { specs: [{ tests: 3 }, 4] }] }));
  const found = await describe(t, folder, report);
  const { project, viewport, browser } =
    found['tests/home.spec.mjs-snapshots/home-desktop-chromium-linux.png'] ?? {};
  t.strictSame([project, viewport, browser], ['desktop-chromium', undefined, undefined]);
});
