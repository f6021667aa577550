import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { completeBuild } from '../../src/generate/assets.js';

t.test('the build contains the assets of the sources, and none whose source was removed', async (t) => {
  const root = t.testdir({
    src: {
      'a.ts': '',
      'notes.md': '',
      schema: { 'x.json': 'new' },
      store: { migrations: { '0001_initial.sql': 'sql' } },
      web: { 'page.html': 'html', 'page.css': 'css', 'mark.svg': 'svg' },
    },
    gen: { 'a.ts': '', openapi: { 'openapi.json': 'json' } },
    test: { 'a.test.ts': '' },
    dist: {
      src: {
        'a.js': '',
        'a.js.map': '',
        'gone.js': '',
        'gone.js.map': '',
        'a.d.ts': '',
        'gone.d.ts': '',
        schema: { 'x.json': 'old', 'gone.json': '' },
        removed: { 'b.js': '' },
      },
      test: { 'a.test.js': '', 'gone.test.js': '', 'gone.test.js.map': '', 'kept.txt': '' },
      gen: { 'a.js': '', 'gone.js': '', 'descriptor.binpb': '' },
      '.tsbuildinfo': '',
    },
  });
  completeBuild(root);
  const dist = (path: string) => join(root, 'dist', path);
  const assets = {
    'schema/x.json': 'new',
    'store/migrations/0001_initial.sql': 'sql',
    'web/page.html': 'html',
  };
  for (const [path, text] of Object.entries(assets)) t.equal(readFileSync(dist(`src/${path}`), 'utf8'), text);
  const kept = [
    'src/a.js',
    'src/a.js.map',
    'src/a.d.ts',
    'src/web/page.css',
    'src/web/mark.svg',
    'test/a.test.js',
    'test/kept.txt',
    'gen/a.js',
    'gen/openapi/openapi.json',
    'gen/descriptor.binpb',
  ];
  for (const path of [...kept, '.tsbuildinfo']) t.ok(existsSync(dist(path)), `${path} is there`);
  const gone = [
    'src/gone.js',
    'src/gone.js.map',
    'src/gone.d.ts',
    'src/schema/gone.json',
    'src/removed/b.js',
    'src/notes.md',
  ];
  for (const path of [...gone, 'gen/gone.js', 'test/gone.test.js', 'test/gone.test.js.map']) {
    t.notOk(existsSync(dist(path)), `${path} is not there`);
  }
});

t.test('a build without assets completes', async (t) => {
  const root = t.testdir({ src: { 'a.json': '1' } });
  completeBuild(root);
  t.equal(readFileSync(join(root, 'dist/src/a.json'), 'utf8'), '1');
});
