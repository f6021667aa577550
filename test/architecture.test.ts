import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { findUndocumented } from './support/source/docstrings.js';
import { findCrowdedFolders, findRoot, listFiles, readSources } from './support/source/folders.js';

const root = findRoot();

t.test('the sources keep to the layout', async (t) => {
  const sources = readSources();
  t.ok('src/main.ts' in sources && 'src/proof/log/merkle.ts' in sources, 'the sources are found');
  t.strictSame(findUndocumented(sources), []);
  t.strictSame(findCrowdedFolders([...listFiles('src'), ...listFiles('test')]), []);
});

/** What dependency-cruiser reports, with the rules of this repository, of a tree of these files. */
function cruise(t: Test, files: Readonly<Record<string, string>>): string[] {
  const dir = t.testdir({});
  cpSync(join(root, '.dependency-cruiser.mjs'), join(dir, '.dependency-cruiser.mjs'));
  cpSync(join(root, 'tsconfig.json'), join(dir, 'tsconfig.json'));
  symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(dir, dirname(path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  }
  const program = join(root, 'node_modules/.bin/depcruise');
  const { stdout } = spawnSync(program, ['--output-type', 'json', 'src'], { cwd: dir, encoding: 'utf8' });
  const { summary } = JSON.parse(stdout) as { summary: { violations: Violation[] } };
  return summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} > ${to}`).sort();
}

type Violation = { rule: { name: string }; from: string; to: string };

t.test('imports that the ranks permit pass', async (t) => {
  const used = 'export const b = 1;\n';
  t.strictSame(
    cruise(t, {
      'src/main.ts': "import './cli/a.js';\n",
      'src/cli/a.ts': "import '../server/process/a.js';\nimport '../proof/b.js';\n",
      'src/server/process/a.ts': "import '../http/a.js';\n",
      'src/server/http/a.ts': "import '../json/b.js';\n",
      'src/server/json/b.ts': used,
      'src/server/witnessing/a.ts': "import './clients/evm/b.js';\nimport '../log/store/b.js';\n",
      'src/server/witnessing/clients/evm/b.ts': "import '../../../net/b.js';\n",
      'src/server/net/b.ts': used,
      'src/server/log/store/b.ts': used,
      'src/server/limits/a.ts': "import '../idempotency/b.js';\n",
      'src/server/idempotency/b.ts': "import '../jobs/b.js';\n",
      'src/server/jobs/b.ts': used,
      'src/proof/b.ts': used,
    }),
    [],
  );
});

t.test('imports upward and sideways, cycles and rooms without a rank are reported', async (t) => {
  const found = cruise(t, {
    'src/protocol/a.ts': "import '../proof/b.js';\n",
    'src/proof/b.ts': "import type { C } from './deep/c.js';\nexport type B = C;\n",
    'src/proof/deep/c.ts': "import type { B } from '../b.js';\nexport type C = B;\n",
    'src/server/http/a.ts': "export const f = async () => import('../database/b.js');\n",
    'src/server/database/b.ts': "export type X = import('../queue/b.js').Y;\n",
    'src/server/queue/b.ts': 'export type Y = 1;\n',
    'src/server/jobs/a.ts': "export * from '../limits/b.js';\n",
    'src/server/limits/b.ts': 'export const b = 1;\n',
    'src/server/witnessing/clients/a.ts': "import '../store/b.js';\n",
    'src/server/witnessing/store/b.ts': 'export const b = 1;\n',
    'src/utils/a.ts': "import '../proof/b.js';\n",
  });
  const sideways = (room: string, from: string, to: string) =>
    `${room} imports upward or sideways: src/${from} > src/${to}`;
  t.strictSame(
    found,
    [
      'a room without a rank: src/utils/a.ts > src/proof/b.ts',
      'an import cycle: src/proof/b.ts > src/proof/deep/c.ts',
      sideways('protocol', 'protocol/a.ts', 'proof/b.ts'),
      sideways('server/database', 'server/database/b.ts', 'server/queue/b.ts'),
      sideways('server/http', 'server/http/a.ts', 'server/database/b.ts'),
      sideways('server/jobs', 'server/jobs/a.ts', 'server/limits/b.ts'),
      sideways('server/witnessing/clients', 'server/witnessing/clients/a.ts', 'server/witnessing/store/b.ts'),
    ].sort(),
  );
});

t.test('a folder may have 20 files of any kind and no more, unless it is a list', async (t) => {
  const files = (folder: string, count: number) =>
    Array.from({ length: count }, (_, at) => `${folder}/${at}.${['ts', 'css', 'sql'][at % 3]}`);
  t.strictSame(findCrowdedFolders(files('src/proof', 20)), []);
  t.strictSame(findCrowdedFolders(files('src/proof', 21)), ['src/proof has 21 files, more than 20']);
  t.strictSame(findCrowdedFolders([...files('src/proof', 20), ...files('src/proof/log', 20)]), []);
  t.strictSame(findCrowdedFolders(files('src/server/database/migrations', 21)), []);
});

t.test('an exported function without a docstring is reported', async (t) => {
  const found = ['src/proof/a.ts f'];
  t.strictSame(findUndocumented({ 'src/proof/a.ts': 'export function f() {}\n' }), found);
  t.strictSame(findUndocumented({ 'src/proof/a.ts': '// x\nexport async function f() {}\n' }), found);
  const overloaded = '/** x */\nexport function f(a: 1): 1;\nexport function f(a: number) {}\n';
  for (const source of ['/** x */\nexport function f() {}\n', 'function f() {}\n', overloaded]) {
    t.strictSame(findUndocumented({ 'src/proof/a.ts': source }), [], source);
  }
});
