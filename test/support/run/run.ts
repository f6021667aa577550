// Checks the sources, gets the programs of others that tests need, bundles the tests and runs tap with one Postgres and one nats-server for all
// test files, and a cluster that tests with a Postgres of their own copy; arguments are passed on to tap. A long run is of the
// files that have long cases, and checks no sources.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { putOnPath } from '../foreign/provide.js';
import { isLong } from '../long.js';
import { makeClusterTemplate } from '../servers/cluster-template.js';
import { bundleTests } from './bundle-tests.js';
import { findImports } from './imports.js';
import { filesLacking, findLacking, sourceOf } from './lacking.js';
import { runTests } from './run-tests.js';
import { allTests, hasLongCases, isLongOnly } from './test-files.js';
import { keepTimes, readTimes } from './times.js';

// Protos are compared with those of git's history, where there is a git.
await putOnPath('git').catch(() => undefined);
const lint = isLong ? undefined : spawn('npm', ['run', '--silent', 'lint'], { stdio: 'inherit' });
const linted = lint === undefined ? [0] : once(lint, 'exit');

const root = process.cwd();
const times = isLong ? '.tap/times-long.json' : '.tap/times.json';
const all = await findImports(root, allTests(root));
const imports = new Map(
  [...all].filter(([path, paths]) => (isLong ? isLongOnly(path) || hasLongCases(paths) : !isLongOnly(path))),
);
const lacking = await findLacking(imports);
const left = filesLacking(lacking);
await bundleTests(
  root,
  [...imports.keys()].filter((file) => !left.has(sourceOf(file))),
  readTimes(times),
);
const [status] = await linted;
if (status !== 0) process.exit(status ?? 1);
const template = await makeClusterTemplate();
try {
  process.env.TEST_CLUSTER = template.path;
  process.exitCode = await runTests(process.argv.slice(2), {
    servers: true,
    lacking,
    keepTimes: (taken) => keepTimes(times, taken),
  });
} finally {
  await template.remove();
}
