/** The documents: what they name exists, and what must be in them is in them. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { codeBlocks, findAnchors, findLinks, findPaths, withoutBlocks } from './support/source/pages.js';

const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'test/support/README.md',
  'test/chaos/README.md',
  ...readdirSync('docs')
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];
const MAX_README_WORDS = 1_200;

const read = (path: string) => readFileSync(path, 'utf8');

/** Whether a file or folder is there; a path may end in a pattern such as `check*.ts`. */
function exists(path: string): boolean {
  if (!path.includes('*')) return existsSync(path);
  const [before = '', after = ''] = path.slice(path.lastIndexOf('/') + 1).split('*');
  return readdirSync(dirname(path)).some((name) => name.startsWith(before) && name.endsWith(after));
}

/** Every text that matches the first group of a pattern in some files, once. */
function findNames(paths: readonly string[], pattern: RegExp): string[] {
  const found = paths.flatMap((path) => [...read(path).matchAll(pattern)].map(([, name = '']) => name));
  return [...new Set(found)].sort();
}

const sourcesIn = (folder: string) =>
  readdirSync(folder, { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((path) => path.endsWith('.ts'));

t.test('every path that a page names exists', async (t) => {
  for (const page of PAGES) {
    const lines = await codeBlocks(page, 'sh');
    const paths = findPaths([withoutBlocks(read(page)), ...lines].join('\n'));
    t.strictSame(
      paths.filter((path) => !exists(path)),
      [],
      `${page}: ${paths.length} paths`,
    );
  }
});

t.test('every relative link leads to a file and to a heading in it', async (t) => {
  for (const page of PAGES) {
    const links = findLinks(withoutBlocks(read(page)));
    const broken = links.filter(({ target, heading }) => {
      const path = target === '' ? page : join(dirname(page), target);
      return !existsSync(path) || (heading !== undefined && !findAnchors(read(path)).includes(heading));
    });
    t.strictSame(broken, [], `${page}: ${links.length} links`);
  }
});

const PERIPHRASES = /\b(?:told|whoever|refus\w+|stands|is had|comes? to nothing|good for)\b/gi;

/** Clauses in the place of a noun, in titles. */
const CLAUSES = /\b(?:whatever|whichever|nobody|somebody|says? (?:why|what|that|so))\b/gi;

t.test('the pages use terms of the field, not periphrases', async (t) => {
  // That page is made of the error catalogue.
  for (const page of PAGES.filter((name) => name !== 'docs/errors.md')) {
    const found = [...withoutBlocks(read(page)).matchAll(PERIPHRASES)].map(([words]) => words);
    t.strictSame(found, [], page);
  }
});

t.test('titles of tests use them as well', async (t) => {
  for (const path of sourcesIn('test').filter((name) => name.endsWith('.test.ts'))) {
    const titles = [...read(path).matchAll(/\bt\.test\(\s*(['"`])(.*?)\1/gs)].map(
      ([, , title = '']) => title,
    );
    const text = titles.join('\n');
    t.strictSame(
      [...text.matchAll(PERIPHRASES), ...text.matchAll(CLAUSES)].map(([words]) => words),
      [],
      path,
    );
  }
});

t.test('every page of docs/ is linked from README', async (t) => {
  const linked = findLinks(read('README.md')).map(({ target }) => target);
  t.strictSame(
    PAGES.filter((page) => page !== 'README.md' && !linked.includes(page)),
    [],
  );
});

t.test('README has 1,200 words at most, those in code blocks not counted', async (t) => {
  const words = withoutBlocks(read('README.md'))
    .split(/\s+/)
    .filter((word) => /\w/.test(word));
  t.ok(words.length <= MAX_README_WORDS, `${words.length} words`);
});

t.test('every npm script that a page names exists', async (t) => {
  const { scripts } = JSON.parse(read('package.json'));
  const named = findNames(PAGES, /\bnpm run (?:--\S+ )?([\w:-]+)/g);
  t.strictSame(
    named.filter((name) => !(name in scripts)),
    [],
  );
});

t.test('docs/settings.md names every setting, and none that does not exist', async (t) => {
  const files = sourcesIn('src/config').filter((path) => !path.endsWith('client-config.ts'));
  const read = findNames(files, /\b(?:get|find|need|read|require)\w*\(\s*(?:settings,\s*)?'([A-Z][A-Z_]+)'/g);
  const documented = findNames(['docs/settings.md'], /^\| (`[A-Z].*?) \|/gm)
    .flatMap((cell) => [...cell.matchAll(/`([A-Z_]+)`/g)])
    .map(([, name]) => name);
  t.ok(read.length > 30);
  t.strictSame(documented.sort(), read);
});

t.test('docs/monitoring.md names every metric, and none that does not exist', async (t) => {
  const measured = findNames(sourcesIn('src/server/ops'), /'(attest_\w+)'/g);
  const documented = findNames(['docs/monitoring.md'], /`(attest_\w+)`/g);
  t.ok(measured.length > 20);
  t.strictSame(documented, measured);
});

/** git leaves empty folders behind where files were moved. */
function hasSources(folder: string): boolean {
  return readdirSync(folder, { recursive: true }).some((name) => /\.tsx?$/.test(String(name)));
}

t.test('docs/architecture.md has every room, and none that does not exist', async (t) => {
  const foldersIn = (folder: string) =>
    readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && hasSources(`${folder}/${entry.name}`))
      .map(({ name }) => `${folder}/${name}/`);
  const rooms = [
    ...foldersIn('src').filter((room) => room !== 'src/server/'),
    ...foldersIn('src/server'),
    'src/server/exports/destinations/',
    'src/server/witnessing/clients/',
  ];
  t.strictSame(findNames(['docs/architecture.md'], /^\| (?:\d+|–) \| `(src\/[\w/-]+)` \|/gm), rooms.sort());
});

t.test('test/support/README.md names every helper, and none that does not exist', async (t) => {
  const rooms = readdirSync('test/support', { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const files = ['', ...rooms.map(({ name }) => name)].flatMap((room) => readdirSync(`test/support/${room}`));
  const helpers = files.filter((name) => /(?<!\.test)\.ts$/.test(name));
  t.strictSame(findNames(['test/support/README.md'], /`([\w-]+\.ts)`/g), helpers.sort());
});
