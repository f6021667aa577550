// Bundles the tests and runs tap with one Postgres and one nats-server for all test files, and a cluster that tests with
// a Postgres of their own copy; arguments are passed on to tap.
import { makeClusterTemplate } from '../servers/cluster-template.js';
import { bundleTests } from './bundle-tests.js';
import { runTests } from './run-tests.js';

await bundleTests(process.cwd());
const template = await makeClusterTemplate();
try {
  process.env.TEST_CLUSTER = template.path;
  process.exitCode = await runTests(process.argv.slice(2), { servers: true });
} finally {
  await template.remove();
}
