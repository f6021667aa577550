// Checks the sources, gets the programs of others that tests need, bundles the tests and runs tap with one Postgres and one nats-server for all
// test files, and a cluster that tests with a Postgres of their own copy; arguments are passed on to tap.
import { spawnSync } from 'node:child_process';
import { putOnPath } from '../foreign/provide.js';
import { makeClusterTemplate } from '../servers/cluster-template.js';
import { bundleTests } from './bundle-tests.js';
import { findImports } from './imports.js';
import { filesLacking, findLacking, sourceOf } from './lacking.js';
import { runTests } from './run-tests.js';
import { allTests } from './test-files.js';
import { keepTimes, readTimes } from './times.js';

// Protos are compared with those of git's history, where there is a git.
await putOnPath('git').catch(() => undefined);
const { status } = spawnSync('npm', ['run', '--silent', 'check'], { stdio: 'inherit' });
if (status !== 0) process.exit(status ?? 1);

const root = process.cwd();
const tests = allTests(root);
const lacking = await findLacking(await findImports(root, tests));
const left = filesLacking(lacking);
await bundleTests(
  root,
  tests.filter((file) => !left.has(sourceOf(file))),
  readTimes(root),
);
const template = await makeClusterTemplate();
try {
  process.env.TEST_CLUSTER = template.path;
  process.exitCode = await runTests(process.argv.slice(2), {
    servers: true,
    lacking,
    keepTimes: (times) => keepTimes(root, times),
  });
} finally {
  await template.remove();
}
