import { readdirSync } from 'node:fs';
import { basename } from 'node:path';
import t from 'tap';
import { filesLacking, findLacking, NEEDS, printLacking } from './lacking.js';

const NO_NEEDS = ['debian-tree', 'programs', 'provide', 'run-python'];

t.test('a test is skipped for each program that it imports and this machine cannot have', async (t) => {
  const imports = new Map([
    ['dist/test/a.test.js', new Set(['dist/test/a.test.js', 'dist/test/support/foreign/git.js'])],
    [
      'dist/test/b.test.js',
      new Set(['dist/test/support/foreign/git.js', 'dist/test/support/foreign/sshd.js']),
    ],
    ['dist/test/c.test.js', new Set(['dist/test/support/foreign/curl.js'])],
    ['dist/test/d.test.js', new Set(['dist/src/git.js'])],
  ]);
  const asked: string[] = [];
  const need = (name: string, isThere: boolean) => {
    const get = async () => {
      asked.push(name);
      if (!isThere) throw new Error('none');
    };
    return [name, { get, install: `package-of-${name}` }] as const;
  };
  const needs = new Map([
    need('git', false),
    need('sshd', false),
    need('curl', true),
    need('chromium', false),
  ]);
  const lacking = await findLacking(imports, needs);
  t.strictSame(asked, ['git', 'sshd', 'curl'], 'what no test needs is not looked for');
  t.strictSame([...filesLacking(lacking)], ['test/a.test.ts', 'test/b.test.ts']);
  t.strictSame(printLacking(lacking), [
    'skipped for want of git; install package-of-git:',
    '  test/a.test.ts',
    '  test/b.test.ts',
    'skipped for want of sshd; install package-of-sshd:',
    '  test/b.test.ts',
  ]);
});

t.test('each module of a program is one that tests are skipped for', async (t) => {
  const folder = new URL('../foreign/', import.meta.url);
  const modules = readdirSync(folder, { recursive: true })
    .map((path) => basename(String(path)))
    .filter((name) => /\.[jt]s$/.test(name) && !name.endsWith('.d.ts'))
    .map((name) => name.replace(/\.[jt]s$/, ''));
  t.strictSame([...new Set(modules)].sort(), [...NEEDS.keys(), ...NO_NEEDS].sort());
});
