// Bundles the tests and runs tap with one Postgres and one nats-server for all test files; arguments are passed on to tap.
import { bundleTests } from './bundle-tests.js';
import { runTests } from './run-tests.js';

await bundleTests(process.cwd());
process.exitCode = await runTests(process.argv.slice(2), { servers: true });
