import t from 'tap';
import { findOrphans, findViolations } from './support/source/architecture.js';
import { findCrowdedFolders, listFiles, readSources } from './support/source/folders.js';
import { findOrphanExports } from './support/source/orphan-exports.js';

t.test('the sources keep to the layout', async (t) => {
  const sources = readSources();
  t.ok('src/main.ts' in sources && 'src/proof/log/merkle.ts' in sources, 'the sources are found');
  t.strictSame(findViolations(sources), []);
  t.strictSame(findOrphans(sources), []);
  t.strictSame(findOrphanExports({ ...sources, ...readSources('test') }), []);
  t.strictSame(findCrowdedFolders([...listFiles('src'), ...listFiles('test')]), []);
});

t.test('an export that no other file imports is reported', async (t) => {
  const ways = [
    "import { a } from '../src/proof/a.js';",
    "import type { a as b } from '../src/proof/a.js';",
    "import * as all from '../src/proof/a.js';",
    "export { a } from '../src/proof/a.js';",
    "const all = await import('../src/proof/a.js');",
    "type A = import('../src/proof/a.js').a;",
    "const thread = new URL('../src/proof/a.js', import.meta.url);",
  ];
  for (const kind of ['const a = 1', 'function a() {}', 'type a = 1', 'class a {}', 'enum a {}']) {
    const source = { 'src/proof/a.ts': `export ${kind};\nconst b = a;\n` };
    t.strictSame(findOrphanExports(source), ['src/proof/a.ts a'], kind);
    for (const way of ways) t.strictSame(findOrphanExports({ ...source, 'test/b.ts': `${way}\n` }), [], way);
  }
  const other = {
    'src/proof/a.ts': 'export const a = 1;\n',
    'test/b.ts': "import { c } from '../src/proof/a.js';\n",
  };
  t.strictSame(findOrphanExports(other), ['src/proof/a.ts a'], 'another name does not count');
});

t.test('a file without importers is reported, unless it is run', async (t) => {
  const run = { 'src/main.ts': "import './cli/a.js';\n", 'src/generate/a.ts': '' };
  t.strictSame(findOrphans({ ...run, 'src/cli/a.ts': '' }), []);
  t.strictSame(findOrphans({ ...run, 'src/cli/a.ts': '', 'src/cli/b.ts': '' }), ['src/cli/b.ts']);
});

t.test('permitted imports are not reported', async (t) => {
  const cases: [path: string, specifier: string][] = [
    ['src/server/core/errors.ts', '../../../gen/attestation/v1/errors_pb.js'],
    ['src/server/core/errors.ts', '../../protocol/enum-names.js'],
    ['src/proof/log/a.ts', '../verify/b.js'],
    ['src/proof/verify/a.ts', '../../protocol/environment.js'],
    ['src/client/a.ts', '../proof/verify/b.js'],
    ['src/server/database/a.ts', '../../proof/b.js'],
    ['src/server/database/a.ts', '../../config/config.js'],
    ['src/server/admin/store/a.ts', '../../limits/b.js'],
    ['src/server/log/a.ts', '../admin/store/b.js'],
    ['src/server/witnessing/a.ts', '../log/store/b.js'],
    ['src/server/witnessing/a.ts', './clients/evm/b.js'],
    ['src/server/attestations/bundles/a.ts', '../../witnessing/store/b.js'],
    ['src/server/exports/ship/a.ts', '../destinations/s3/b.js'],
    ['src/server/exports/ship/a.ts', '../../webhooks/store/b.js'],
    ['src/server/public/a.ts', '../attestations/bundles/b.js'],
    ['src/server/pipeline/a.ts', '../webhooks/delivery/b.js'],
    ['src/server/http/rest/a.ts', '../../json/b.js'],
    ['src/config/a.ts', '../server/keys/secrets.js'],
    ['src/server/process/a.ts', '../http/b.js'],
    ['src/main.ts', './cli/a.js'],
    ['src/cli/a.ts', '../server/process/run.js'],
    ['src/generate/a.ts', '../server/rpc/b.js'],
    ['src/server/json/a.ts', 'node:fs'],
  ];
  for (const [path, specifier] of cases) {
    t.strictSame(
      findViolations({ [path]: `import { x } from '${specifier}';\n` }),
      [],
      `${path} ${specifier}`,
    );
  }
});

t.test('an import upward or sideways is reported, with both ends', async (t) => {
  const cases: [path: string, specifier: string, problem: string][] = [
    ['src/protocol/a.ts', '../proof/b.js', 'protocol may not import proof'],
    ['src/server/core/errors.ts', '../../config/config.js', 'server/core may not import config'],
    ['src/server/core/errors.ts', '../process/b.js', 'server/core may not import server/process'],
    ['src/proof/a.ts', '../server/json/b.js', 'proof may not import server/json'],
    ['src/proof/a.ts', '../server/core/b.js', 'proof may not import server/core'],
    ['src/client/a.ts', '../server/core/b.js', 'client may not import server/core'],
    ['src/server/schema/a.ts', '../database/b.js', 'server/schema may not import server/database'],
    ['src/server/database/a.ts', '../queue/b.js', 'server/database may not import server/queue'],
    ['src/server/jobs/a.ts', '../log/b.js', 'server/jobs may not import server/log'],
    ['src/server/limits/a.ts', '../admin/b.js', 'server/limits may not import server/admin'],
    ['src/server/admin/a.ts', '../log/b.js', 'server/admin may not import server/log'],
    ['src/server/log/a.ts', '../witnessing/b.js', 'server/log may not import server/witnessing'],
    [
      'src/server/witnessing/a.ts',
      '../attestations/b.js',
      'server/witnessing may not import server/attestations',
    ],
    [
      'src/server/witnessing/clients/a.ts',
      '../store/b.js',
      'server/witnessing/clients may not import server/witnessing',
    ],
    [
      'src/server/witnessing/clients/evm/a.ts',
      '../../../embedded/b.js',
      'server/witnessing/clients may not import server/embedded',
    ],
    ['src/server/attestations/a.ts', '../exports/b.js', 'server/attestations may not import server/exports'],
    [
      'src/server/webhooks/a.ts',
      '../attestations/b.js',
      'server/webhooks may not import server/attestations',
    ],
    [
      'src/server/exports/destinations/s3/a.ts',
      '../../ship/b.js',
      'server/exports/destinations may not import server/exports',
    ],
    ['src/server/exports/a.ts', '../pipeline/b.js', 'server/exports may not import server/pipeline'],
    ['src/server/public/a.ts', '../exports/b.js', 'server/public may not import server/exports'],
    ['src/server/rpc/a.ts', '../http/b.js', 'server/rpc may not import server/http'],
    ['src/server/http/rest/a.ts', '../../database/b.js', 'server/http may not import server/database'],
    ['src/server/http/a.ts', '../rpc/b.js', 'server/http may not import server/rpc'],
    ['src/config/a.ts', '../server/json/b.js', 'config may not import server/json'],
    ['src/config/process-env.ts', '../server/database/b.js', 'config may not import server/database'],
    ['src/server/process/a.ts', '../../cli/b.js', 'server/process may not import cli'],
    ['src/server/process/run.ts', '../../main.js', 'server/process may not import cli'],
    ['src/cli/a.ts', '../generate/b.js', 'cli may not import generate'],
  ];
  for (const [path, specifier, problem] of cases) {
    const [found = '', ...more] = findViolations({ [path]: `import type { X } from '${specifier}';\n` });
    t.match(found, new RegExp(`^${path} imports src/.*: ${problem}$`), `${path} ${specifier}`);
    t.strictSame(more, []);
  }
});

t.test('every way to bring in a module counts as an import', async (t) => {
  const ways = [
    "import '../database/b.js';",
    "export { x } from '../database/b.js';",
    "export * from '../database/b.js';",
    "const f = async () => import('../database/b.js');",
    "export type T = import('../database/b.js').X;",
    "export const url = new URL('../database/b.js', import.meta.url);",
  ];
  for (const way of ways) {
    const found = findViolations({ 'src/server/http/a.ts': `${way}\n` });
    t.strictSame(
      found,
      ['src/server/http/a.ts imports src/server/database/b.ts: server/http may not import server/database'],
      way,
    );
  }
  t.strictSame(
    findViolations({
      'src/server/http/a.ts': "// import '../database/b.js'\nconst text = '../database/b.js';\n",
    }),
    [],
  );
});

t.test('a room without a rank is reported', async (t) => {
  t.strictSame(findViolations({ 'src/utils/a.ts': '' }), ['src/utils/a.ts is in a room without a rank']);
  t.strictSame(findViolations({ 'src/a.ts': '' }), ['src/a.ts is in a room without a rank']);
});

t.test('a cycle of imports is reported, with the way around', async (t) => {
  const cycle = findViolations({
    'src/proof/a.ts': "import { b } from './b.js';\n",
    'src/proof/b.ts': "import { c } from './deep/c.js';\n",
    'src/proof/deep/c.ts': "import type { A } from '../a.js';\n",
    'src/proof/d.ts': "import { a } from './a.js';\n",
  });
  t.strictSame(cycle, [
    'import cycle: src/proof/a.ts > src/proof/b.ts > src/proof/deep/c.ts > src/proof/a.ts',
  ]);
  const own = findViolations({ 'src/proof/a.ts': "import { b } from './a.js';\n" });
  t.strictSame(own, ['import cycle: src/proof/a.ts > src/proof/a.ts']);
  const diamond = findViolations({
    'src/proof/a.ts': "import './b.js';\nimport './c.js';\n",
    'src/proof/b.ts': "import './d.js';\n",
    'src/proof/c.ts': "import './d.js';\n",
    'src/proof/d.ts': '',
  });
  t.strictSame(diamond, [], 'two ways to a file are no cycle');
});

t.test('only src/config/process-env.ts may read the environment, by any syntax', async (t) => {
  const ways = [
    'export const a = process.env.A;',
    "export const a = process['env'];",
    'export const { env } = process;',
    'export const { env: settings } = process;',
    "import { env } from 'node:process';",
    "import { env as settings } from 'process';",
  ];
  for (const way of ways) {
    t.strictSame(
      findViolations({ 'src/server/database/a.ts': `${way}\n` }),
      ['src/server/database/a.ts reads process.env'],
      way,
    );
    t.strictSame(findViolations({ 'src/config/process-env.ts': `${way}\n` }), [], way);
  }
  t.strictSame(
    findViolations({
      'src/server/database/a.ts': '/** Not `process.env`. */\nexport const pid = process.pid;\n',
    }),
    [],
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
  const found = ['src/proof/a.ts exports a function without a docstring'];
  t.strictSame(findViolations({ 'src/proof/a.ts': 'export function f() {}\n' }), found);
  t.strictSame(findViolations({ 'src/proof/a.ts': '// x\nexport async function f() {}\n' }), found);
  const overloaded = '/** x */\nexport function f(a: 1): 1;\nexport function f(a: number) {}\n';
  for (const source of ['/** x */\nexport function f() {}\n', 'function f() {}\n', overloaded]) {
    t.strictSame(findViolations({ 'src/proof/a.ts': source }), [], source);
  }
});
