// Runs tap with one Postgres and one nats-server for all test files; arguments are passed on to tap.
import { runTests } from './run-tests.js';

process.exitCode = await runTests(process.argv.slice(2), { servers: true });
