import { join } from 'node:path';
import t from 'tap';
import { findImports } from './imports.js';
import { findNamedTests, hasLongCases, isLongOnly, needsServers } from './test-files.js';

t.test('a test is named by its source or its compiled file', async (t) => {
  const root = t.testdir({
    test: { log: { 'tree.test.ts': '', 'forest.test.ts': '', 'tree.ts': '' } },
    dist: { test: { log: { 'tree.test.js': '', 'forest.test.js': '', 'tree.js': '' } } },
  });
  const [tree, forest] = [join('dist/test/log/tree.test.js'), join('dist/test/log/forest.test.js')];
  for (const name of [
    'test/log/tree.test.ts',
    './test/log/tree.test.ts',
    'dist/test/log/tree.test.js',
    join(root, 'test/log/tree.test.ts'),
    join(root, tree),
  ]) {
    t.same(findNamedTests(root, [name]), { files: [tree] }, name);
  }
  t.same(findNamedTests(root, ['test/log/tree.test.ts', forest]), { files: [tree, forest] });
  for (const name of ['test/log/tree.ts', 'test/log/gone.test.ts', 'src/log/tree.test.ts', 'test', '']) {
    t.match(findNamedTests(root, ['test/log/forest.test.ts', name]), {
      problem: `There is no test file ${name}`,
    });
  }
  t.same(findNamedTests(root, ['tree']), {
    problem: 'There is no test file tree\nTests of a similar name:\n  test/log/tree.test.ts',
  });
  t.same(findNamedTests(root, ['gone.test.ts']), { problem: 'There is no test file gone.test.ts' });
});

t.test('only a test that imports the shared servers needs them', async (t) => {
  const root = t.testdir({
    'a.test.js': "import { x } from './scene.js';\nx();\n",
    'b.test.js': "const { x } = await import('./scene.js');\nx();\n",
    'c.test.js': "import t from 'tap';\nt.match('', \"import './servers/shared-servers.js'\");\n",
    'scene.js': "export { x } from './servers/shared-servers.js';\n",
    servers: { 'shared-servers.js': 'export const x = () => {};\n' },
  });
  const imports = await findImports(root, ['a.test.js', 'b.test.js', 'c.test.js']);
  t.ok(needsServers(imports.get('a.test.js')!));
  t.ok(needsServers(imports.get('b.test.js')!));
  t.notOk(needsServers(imports.get('c.test.js')!));
});

t.test('a test has long cases if it imports what leaves them out of other runs', async (t) => {
  t.ok(hasLongCases(new Set(['dist/test/a.test.js', 'dist/test/support/long.js'])));
  t.notOk(hasLongCases(new Set(['dist/test/a.test.js', 'dist/test/support/until.js'])));
});

t.test('a test that is named so is in long runs only', async (t) => {
  t.ok(isLongOnly('dist/test/log/tree.long.test.js'));
  t.notOk(isLongOnly('dist/test/log/long.test.js'));
});
