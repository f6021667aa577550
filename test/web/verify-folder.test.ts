/** Folders on the verify page, as a file without a network: what it says is what the command says. */
import { appendFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { redactSet } from '../../src/proof/set/set-proof.js';
import { attestFolder } from '../cli/sets/attested-folder.js';
import { makeFolder, takeAll } from '../client/files/folders.js';
import { readAnnouncements } from '../support/calling/accessibility.js';
import { startBrowser } from '../support/calling/browser.js';
import { runHere } from '../support/calling/run-cli.js';
import { dropPaths, readFindings, readSteps, readVerdict } from './verify-driver.js';
import { dropEach, writeVerifyFile } from './verify-file.js';
import { assertWellMade } from './well-made.js';

const PATHS = ['a-b', 'a/b', 'one', 'shots/shot.png', 'two'];
const BUNDLE = 'run.bundle.json';

const onPage = await writeVerifyFile(t, await startBrowser(t));

t.test('folder, set file and bundle are verified in any order', async (t) => {
  const { at, art } = await attestFolder(t, PATHS);
  const [set, bundle] = [at('run.set.json'), at(BUNDLE)];
  await onPage(t, async (page) => {
    await dropPaths(page, [set, bundle]);
    await dropPaths(page, [art]);
    await page.locator('.headline', { hasText: /^Verified$/ }).waitFor();
    const { summary } = await readVerdict(page, BUNDLE);
    t.match(summary, /^The set of 5 files was attested under sub_.* existed no later than /);
    const { counts } = await readFindings(page);
    t.equal(counts, 'Files: 5 ok, 0 changed, 0 missing, 0 extra, 0 withheld; the set has 5 files.');
    t.match((await readSteps(page))[1], { name: 'statement', word: 'Passed' });
    await page.getByRole('heading', { name: 'It is about this set of files' }).waitFor();
    t.match(await readAnnouncements(page), [`Verified. ${summary}`]);
    await assertWellMade(t, page, 'folder-verified');
  });
  for (const order of [
    [bundle, set, art],
    [art, bundle, set],
  ]) {
    await onPage(t, async (page) => {
      await dropEach(page, order);
      await page.locator('.headline', { hasText: /^Verified$/ }).waitFor();
    });
  }
});

t.test('files that are changed, missing or extra are listed, in the words of the command', async (t) => {
  const changes: [kind: string, change: (art: string) => void, paths: Record<string, string[]>][] = [
    ['changed', (art) => writeFileSync(join(art, 'one'), 'One'), { changed: ['one'] }],
    ['missing', (art) => rmSync(join(art, 'shots/shot.png')), { missing: ['shots/shot.png'] }],
    ['extra', (art) => writeFileSync(join(art, 'new\u202e'), 'new'), { extra: ['new\ufffd'] }],
    [
      'all of them',
      (art) => {
        writeFileSync(join(art, 'two'), 'Two');
        renameSync(join(art, 'a-b'), join(art, '<img src=x onerror=alert(1)>'));
      },
      { changed: ['two'], missing: ['a-b'], extra: ['<img src=x onerror=alert(1)>'] },
    ],
  ];
  for (const [kind, change, paths] of changes) {
    const { at, art, evidence } = await attestFolder(t, PATHS);
    change(art);
    const { code, stdout } = await runHere(['verify', art, ...evidence]);
    t.equal(code, 1);
    await onPage(t, async (page) => {
      await dropEach(page, [art, at('run.set.json'), at(BUNDLE)]);
      const { headline, summary } = await readVerdict(page, BUNDLE);
      t.equal(headline, 'Not verified', kind);
      t.ok(stdout.endsWith(`\n${summary}\n`), summary ?? '');
      const found = await readFindings(page);
      t.match(found.paths, paths);
      t.match(stdout, `${found.counts.replace(/\.$/, '')}\n`);
      t.ok(
        (await readSteps(page)).every(({ word }) => word === 'Passed'),
        'the bundle itself is verified',
      );
      t.equal(await page.locator('main img').count(), 0);
      await assertWellMade(t, page, `folder-${kind.replaceAll(' ', '-')}`);
    });
  }
});

t.test('of very many files that differ the first are listed, with how many more', async (t) => {
  const paths = Array.from({ length: 30 }, (_, i) => `f${i}`);
  const { at, art } = await attestFolder(t, ['kept', ...paths]);
  for (const path of paths) rmSync(join(art, path));
  await onPage(t, async (page) => {
    await dropEach(page, [art, at('run.set.json'), at(BUNDLE)]);
    const { missing = [] } = (await readFindings(page)).paths;
    t.strictSame([missing.length, missing.at(-1)], [21, 'and 10 more']);
  });
});

t.test('2,000 files in one folder are read to the last, and the page goes on meanwhile', async (t) => {
  const { at, art } = await attestFolder(
    t,
    Array.from({ length: 2000 }, (_, i) => `many/${i}.json`),
  );
  await onPage(t, async (page) => {
    await page.evaluate(WATCH);
    await dropEach(page, [art, at('run.set.json'), at(BUNDLE)]);
    t.equal((await readVerdict(page, BUNDLE)).headline, 'Verified');
    t.match((await readFindings(page)).counts, /^Files: 2000 ok, 0 changed, 0 missing, 0 extra/);
    const { longest, shown } = await page.evaluate<{ longest: number; shown: string[] }>('watched');
    t.comment(`the page did nothing else for ${Math.round(longest)} ms at most`);
    t.ok(longest < MAX_STILL_MS, `${longest} ms`);
    t.ok(
      shown.some((text) => /^[\d,]+ of 2,000 files$/.test(text)),
      'progress is shown',
    );
    appendFileSync(join(art, 'many/1999.json'), '.');
    await page.getByRole('button', { name: 'Change' }).first().click();
    await dropPaths(page, [art]);
    await page.locator('.headline', { hasText: 'Not verified' }).waitFor();
    t.strictSame((await readFindings(page)).paths.changed, ['many/1999.json']);
  });
});

/** On a machine under load. */
const MAX_STILL_MS = 5000;

/** Watches how long timers wait, and what progress is shown. */
const WATCH = `(() => {
  globalThis.watched = { longest: 0, shown: [] };
  let last = performance.now();
  setInterval(() => {
    const now = performance.now();
    watched.longest = Math.max(watched.longest, now - last);
    last = now;
  }, 10);
  new MutationObserver(() => {
    const text = document.querySelector('[data-takes=artifact] > .quiet')?.textContent;
    if (text && watched.shown.at(-1) !== text) watched.shown.push(text);
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
})()`;

t.test('withheld entries are counted, and the checkpoint that the set names is shown', async (t) => {
  const notBefore = { origin: 'live.log.example', rootHash: 'ab'.repeat(32), treeSize: 7 };
  const { at, art, text, evidence } = await attestFolder(t, PATHS, notBefore);
  const redacted = await takeAll(redactSet([Buffer.from(text)], (path) => !path.startsWith('a')));
  writeFileSync(at('run.set.json'), redacted.join(''));
  rmSync(join(art, 'a-b'));
  rmSync(join(art, 'a'), { recursive: true });
  const { stdout } = await runHere(['verify', art, ...evidence]);
  await onPage(t, async (page) => {
    await dropEach(page, [art, at('run.set.json'), at(BUNDLE)]);
    t.equal((await readVerdict(page, BUNDLE)).headline, 'Verified');
    const { counts, paths } = await readFindings(page);
    t.equal(counts, 'Files: 3 ok, 0 changed, 0 missing, 0 extra, 2 withheld; the set has 5 files.');
    t.ok('withheld' in paths);
    const shown = await page.locator('.not-before').textContent();
    t.match(
      shown,
      /^The set names the checkpoint of 7 leaves of live\.log\.example, root (?:ab)+: if the log/,
    );
    t.ok(stdout.endsWith(`\n${shown}\n`));
    await assertWellMade(t, page, 'folder-withheld');
  });
});

t.test(
  '.attestignore is followed as by the command, and hides neither itself nor a file of the set',
  async (t) => {
    const { at, art, evidence } = await attestFolder(t, PATHS);
    makeFolder(t, ['new/1', 'new/2', 'a/new'], art);
    writeFileSync(join(art, '.attestignore'), 'new\none\n.attestignore\n');
    const { stdout } = await runHere(['verify', art, ...evidence]);
    await onPage(t, async (page) => {
      await dropEach(page, [art, at('run.set.json'), at(BUNDLE)]);
      t.equal((await readVerdict(page, BUNDLE)).headline, 'Not verified');
      const { counts, paths } = await readFindings(page);
      t.match(paths, { missing: ['one'], extra: ['.attestignore'] });
      t.match(stdout, counts.replace(/\.$/, '\n'));
      await page.getByText('Left out by .attestignore in the folder: 4.').waitFor();
    });
  },
);

t.test('set file and bundle inside the folder are not counted', async (t) => {
  const { at, art, text, bundleText } = await attestFolder(t, PATHS);
  writeFileSync(join(art, 'set.json'), text);
  writeFileSync(join(art, 'bundle.json'), bundleText);
  await onPage(t, async (page) => {
    await dropEach(page, [art, at('run.set.json'), at(BUNDLE)]);
    t.equal((await readVerdict(page, BUNDLE)).headline, 'Verified');
    await page.getByText('they are the set file or the bundle: bundle.json, set.json.').waitFor();
  });
});

t.test('a folder without its set, and a set without its folder, are not enough', async (t) => {
  const { at, art } = await attestFolder(t, PATHS);
  await onPage(t, async (page) => {
    await dropEach(page, [art, at(BUNDLE)]);
    t.equal((await readVerdict(page, BUNDLE)).headline, 'Not fully checked');
    await page.getByText('Give the set file as well').waitFor();
    await assertWellMade(t, page, 'folder-without-set');
    await page.getByRole('button', { name: 'Change' }).first().click();
    await dropPaths(page, [at('run.set.json')]);
    await page.getByText('no folder or file was given to compare with the set').first().waitFor();
    await page.getByText('Give the folder as well, or a file of it.').waitFor();
    t.equal((await readVerdict(page, BUNDLE)).headline, 'Not fully checked');
    await dropPaths(page, [art, at(BUNDLE)]);
    await page.getByText('drop it alone, or choose it').waitFor();
    await page.getByLabel('Choose a folder…').setInputFiles(art);
    await page.locator('.headline', { hasText: /^Verified$/ }).waitFor();
    await dropPaths(page, [at('art/one'), at('art/two')]);
    await page.getByText('Two of what was dropped are neither').waitFor();
    await dropPaths(page, [at('run.set.json')], '[data-takes=artifact]');
    await page.locator('[data-takes=artifact]').getByText('run.set.json').waitFor();
    await page.getByText('Not verified: the file is not in the set.').first().waitFor();
  });
});
