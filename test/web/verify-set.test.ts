/** Sets on the verify page: one file of a set, set files that are wrong, and the page as it is served. */
import { createHash } from 'node:crypto';
import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { createSet } from '../../src/proof/set/create-set.js';
import { proveMember } from '../../src/proof/set/set-proof.js';
import { attestFolder, setOf } from '../cli/sets/attested-folder.js';
import { presentOf } from '../client/files/folders.js';
import { trustRoots } from '../proof/verifying.js';
import { startApp } from '../support/app.js';
import { type PageOptions, startBrowser } from '../support/calling/browser.js';
import { choose, drop, dropPaths, readFindings, readSteps, readVerdict, tabTo } from './verify-driver.js';
import { dropEach, writeVerifyFile } from './verify-file.js';
import { assertWellMade } from './well-made.js';

const PATHS = ['a-b', 'a/b', 'one', 'shots/shot.png', 'two'];
const BUNDLE = 'run.bundle.json';
const MARKUP = '<img src=x onerror=alert(1)>\u202eexe.nosj';

const app = await startApp(t);
const browser = await startBrowser(t);
const onPage = await writeVerifyFile(t, browser);

/** Opens the page as it is served, with the trust roots of the samples. */
async function onServedPage(
  t: Test,
  use: (page: Page) => Promise<void>,
  options: Partial<PageOptions> = {},
): Promise<void> {
  await browser.visit(t, { origin: app.baseUrl, ...options }, async ({ page }) => {
    await page.goto(`${app.verifyUrl}/`);
    await page.getByText('publishes now').waitFor();
    await choose(page, 'Use my own copy…', { name: 'roots.json', content: trustRoots });
    await page.getByText('Your own copy').waitFor();
    await use(page);
  });
}

t.test('one file of a set is found in it, and its path is shown', async (t) => {
  const { at, art } = await attestFolder(t, PATHS);
  writeFileSync(at('other'), 'other');
  const evidence = [at(BUNDLE), at('run.set.json')];
  await onPage(t, async (page) => {
    await dropPaths(page, [join(art, 'shots/shot.png'), ...evidence]);
    const { headline, summary } = await readVerdict(page, BUNDLE);
    t.equal(headline, 'Verified');
    t.match(summary, /^This artifact is shots\/shot\.png in the set of 5 files that was attested under sub_/);
    t.match(await page.locator('.facts').textContent(), 'Path in the setshots/shot.png');
    await assertWellMade(t, page, 'member');
    await dropPaths(page, [at('other')]);
    await page.getByText('Not verified: the file is not in the set.').first().waitFor();
    t.equal((await readVerdict(page, BUNDLE)).headline, 'Not verified');
    await assertWellMade(t, page, 'no-member');
  });
});

t.test('files of any length are hashed, alone and in a folder', async (t) => {
  const { at, art } = await attestFolder(t, ['empty', 'large']);
  const large = 17 * 1024 * 1024 + 1;
  const files = { empty: Buffer.alloc(0), large: Buffer.alloc(large, 7) };
  const set = createSet();
  const entries = Object.entries(files).map(([path, content]) => {
    writeFileSync(join(art, path), content);
    const sha256 = createHash('sha256').update(content).digest('hex');
    return { path, bytes: content.length, sha256, salt: '0'.repeat(32) };
  });
  const text = entries.map((entry) => set.add(entry)).join('') + set.end().text;
  writeFileSync(at('run.set.json'), text);
  await onPage(t, async (page) => {
    await dropEach(page, [at(BUNDLE), at('run.set.json'), art]);
    t.equal(
      (await readFindings(page)).counts,
      'Files: 2 ok, 0 changed, 0 missing, 0 extra, 0 withheld; the set has 2 files.',
    );
    t.equal((await readVerdict(page, BUNDLE)).headline, 'Not verified', 'of another set');
    for (const { path, sha256 } of entries) {
      await dropPaths(page, [join(art, path)]);
      await page.locator('[data-takes=artifact]').getByText(sha256).waitFor();
    }
  });
});

t.test('a bundle with a member proof takes its one file, and no set file', async (t) => {
  const { at, text, bundleText } = await attestFolder(t, PATHS);
  const proof = await proveMember([Buffer.from(text)], 'two');
  writeFileSync(at('two.bundle.json'), JSON.stringify({ ...JSON.parse(bundleText), set_proof: proof }));
  await onPage(t, async (page) => {
    await dropPaths(page, [at('art/two'), at('two.bundle.json')]);
    const { headline, summary } = await readVerdict(page, 'two.bundle.json');
    t.equal(headline, 'Verified');
    t.match(summary, /^This artifact is two in the set of 5 files that was attested under sub_/);
    await assertWellMade(t, page, 'member-proof');
    await dropPaths(page, [at('art/one')]);
    await page.getByText('Not verified: the file is not two of the set.').first().waitFor();
    t.equal((await readVerdict(page, 'two.bundle.json')).headline, 'Not verified');
  });
});

t.test('set files that are wrong are not verified, with line or path', async (t) => {
  const { at, art, text } = await attestFolder(t, PATHS);
  const lines = text.split('\n');
  const long = `{"bytes":1,"path":"${'a'.repeat(70_000)}"`;
  const withLine = (line: string) => [lines[0], `${line},`, ...lines.slice(1)].join('\n');
  const entry = (path: string) => JSON.stringify({ ...presentOf('one'), path, salt: '0'.repeat(32) });
  const forged = text.replace(presentOf('one').sha256, presentOf('two').sha256);
  const cases: [what: string, text: string, reason: RegExp][] = [
    ['another', setOf(PATHS).text, /the head of the set is not what was attested/],
    ['forged', forged, /the head is not that of the entries: they have another root/],
    [
      'unsorted',
      [lines[0], lines[2], lines[1], ...lines.slice(3)].join('\n'),
      /line 3 \(a-b\) is not sorted/,
    ],
    ['cut off', text.slice(0, -400), /line \d .*|the file is cut off: it ends after line \d/],
    ['before its head', lines.slice(0, 4).join('\n'), /is cut off: it ends after line 4, before its head/],
    ['too long a line', withLine(long), /line 2 is longer than 64 KiB/],
    ['twice', withLine(lines[1]!.slice(0, -1)), /line 3 \(a-b\) occurs twice/],
    [
      'out of the folder',
      withLine(entry('../x')),
      /line 2 has the path \.\.\/x, which has a segment that is/,
    ],
    [
      'hostile',
      withLine(entry(`${MARKUP}/`)),
      /line 2 has the path <img .*\ufffdexe\.nosj\/, which ends with/,
    ],
    ['printed anew', JSON.stringify(JSON.parse(text), null, 2), /line 1 is not that of a set file/],
    ['newer', text.replace('.set.v1+', '.set.v2+'), /a media type of sets that this version does not know/],
  ];
  await onPage(t, async (page) => {
    await dropEach(page, [at(BUNDLE), art]);
    for (const [what, content, reason] of cases) {
      const name = `${what}.json`;
      const change = page.locator('[data-takes=set]').getByRole('button', { name: 'Change' });
      if ((await change.count()) > 0) await change.click();
      await choose(page, 'Choose the set file…', { name, content: Buffer.from(content) });
      await page.locator('[data-takes=set]').getByText(name).waitFor();
      await page.locator('.summary', { hasText: reason }).waitFor();
      const headline = what === 'newer' ? 'Not fully checked' : 'Not verified';
      t.equal(await page.locator('.headline').textContent(), headline, what);
      t.equal((await readSteps(page))[1]?.word, what === 'newer' ? 'Not checked' : 'Failed', what);
      t.equal(await page.locator('.files').count(), what === 'another' ? 1 : 0, 'nothing is said of files');
      t.equal(await page.locator('main img').count(), 0);
      t.notMatch(await page.locator('main').textContent(), /[\u202a-\u202e\u2066-\u2069]/);
      if (what === 'hostile') await assertWellMade(t, page, 'hostile-set');
    }
    writeFileSync(at('huge.json'), lines[0]!);
    truncateSync(at('huge.json'), 3_000_000_000);
    await dropPaths(page, [at('huge.json')]);
    await page.locator('.summary', { hasText: 'line 1 is longer than 64 KiB' }).waitFor();
  });
});

t.test('as it is served: at once, by the buttons with the keyboard, and in each other’s place', async (t) => {
  const { at, art, text, bundleText } = await attestFolder(t, PATHS);
  await onServedPage(t, async (page) => {
    await dropPaths(page, [at('run.set.json'), art, at(BUNDLE)]);
    t.equal((await readVerdict(page, BUNDLE)).headline, 'Verified');
    t.match((await readFindings(page)).counts, /^Files: 5 ok, 0 changed, 0 missing, 0 extra, 0 withheld/);
    await page.locator('[data-takes=artifact]').getByRole('button', { name: 'Change' }).click();
    writeFileSync(join(art, 'back\\slash'), '');
    await dropPaths(page, [art]);
    await page.getByText('paths that no set can have: “back\\slash” has a backslash.').waitFor();
    await assertWellMade(t, page, 'folder-problem');
    await dropPaths(page, [art, at('art')]);
    await page.getByText('Two of what was dropped are neither').waitFor();
  });
  const other = await attestFolder(t, PATHS);
  const phone = { width: 360, colorScheme: 'dark' } as const;
  await onServedPage(
    t,
    async (page) => {
      await assertWellMade(t, page, 'folder-empty');
      await tabTo(page, 'Choose a folder…');
      const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.keyboard.press('Space')]);
      await chooser.setFiles(other.art);
      await page.getByText('5 files,').waitFor();
      for (const [name, text] of Object.entries({ 's.json': other.text, 'b.json': other.bundleText })) {
        await choose(page, 'Choose the bundle…', { name, content: Buffer.from(text) });
        await page.getByText(name).first().waitFor();
      }
      t.equal((await readVerdict(page, 'b.json')).headline, 'Verified', 'each is taken for what it is');
      await assertWellMade(t, page, 'folder-dark');
      await page.emulateMedia({ media: 'print' });
      t.notOk(await page.locator('.cards').isVisible());
      t.ok(await page.locator('.files').isVisible(), 'the findings are printed');
    },
    phone,
  );
  await onServedPage(t, async (page) => {
    const given = [
      { name: 's.json', content: Buffer.from(text) },
      { name: 'one', content: Buffer.from('one') },
      { name: 'b.json', content: Buffer.from(bundleText) },
    ];
    await drop(page, 'main', given);
    t.match((await readVerdict(page, 'b.json')).summary, /^This artifact is one in the set of 5 files/);
    for (const takes of ['set', 'bundle']) {
      await page.locator(`[data-takes=${takes}]`).getByRole('button', { name: 'Change' }).click();
    }
    await choose(page, 'Choose the set file…', { name: 'b.json', content: Buffer.from(bundleText) });
    await page.locator('[data-takes=bundle]').getByText('b.json').waitFor();
  });
});
